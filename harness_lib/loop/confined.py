"""Run calls that the user has not agreed to in a sandbox: they write the project, temporary files and caches.

A call that the user allows, when asked or by a rule, runs outside of it, as does what the user types. The
sandbox confines the programs that tools start; the built-in tools for files are functions of this process,
so they ask here. Source: docs/sandbox.md.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from harness_lib.errors import EnvSetupError
from harness_lib.loop import trust
from harness_lib.system.git.repository import Git
from harness_lib.system.place import data_home, find_root
from harness_lib.system.processes import child, engines, sandbox

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

# Whether the call that runs now belongs into the sandbox.
_IS_WITHIN: ContextVar[bool] = ContextVar("WITHIN", default=False)
_finding = threading.Lock()


class Wall(NamedTuple):
    """The sandbox of a session, and the directory that its commands have for temporary files."""

    box: sandbox.Sandbox
    temporary: Path


@contextmanager
def within(*, agreed: bool) -> Iterator[None]:
    """Confine the tool that runs in the block, unless the user has `agreed` to its call."""
    token = _IS_WITHIN.set(not agreed)
    try:
        yield
    finally:
        _IS_WITHIN.reset(token)


def wall(runtime: Runtime) -> Wall | None:
    """Return the sandbox of the call that runs now, None for none.

    When first asked, find it and tell the user. Raises EnvSetupError if it is required and does not start.
    """
    if not _IS_WITHIN.get():
        return None
    # Calls that only read run at the same time.
    with _finding:
        if "wall" not in runtime.kept:
            runtime.kept["wall"] = _find(runtime)
    found: Wall | None = runtime.kept["wall"]
    return found


def _find(runtime: Runtime) -> Wall | None:
    if outer := runtime.env.get(sandbox.INSIDE):
        runtime.notice(f"sandbox: that of the program which started hs ({outer})")
        return None
    mode = cast("sandbox.Mode", trust.setting(runtime, "sandbox"))
    engine = sandbox.required(mode, runtime.env)
    if engine is None:
        if mode != "off":
            runtime.notice("sandbox: none, as neither bubblewrap nor nono-py starts here")
        return None
    place, git = _project(runtime)
    own_directory = tempfile.TemporaryDirectory(prefix="hs-", ignore_cleanup_errors=True)
    temporary = Path(runtime.opened.enter_context(own_directory))
    env = runtime.harness_environment()
    data = Path(os.path.realpath(data_home.directory(env)))
    writable = [place] if place else []
    if find_root.search(env, str(runtime.work_directory)):
        # The checks of a list run in a clean work tree in the end.
        writable.append(data / "worktrees")
        writable[-1].mkdir(mode=0o700, parents=True, exist_ok=True)
    own = [runtime.home / name for name in (".auth.json", ".auth-cache.json")]
    box = sandbox.of_session(engine, env, writable, data, git, own)
    written = f"{place}, temporary files and caches" if place else "temporary files and caches"
    runtime.notice(f"sandbox: {engines.TITLES[engine]}; calls that you are not asked about write {written}")
    return Wall(box, temporary)


def _project(runtime: Runtime) -> tuple[Path | None, Path | None]:
    """Return the directory that calls may write, and its git directory.

    The home directory, or one above it, is no project: start files of the shell are there.
    """
    work = Path(os.path.realpath(runtime.work_directory))
    home = Path(os.path.realpath(runtime.env.get("HOME") or Path.home()))
    around, git = trust.project_root(runtime, work), None
    if (around / ".git").exists():
        with suppress(EnvSetupError):
            git = Git.open(work)
            around = git.top
    place = next((each for each in (around, work) if not home.is_relative_to(each)), None)
    if not git or not place:
        return place, None
    (git.common_dir / "hooks").mkdir(exist_ok=True)
    return place, git.common_dir


def started(runtime: Runtime, command: Sequence[str], env: Mapping[str, str]) -> child.Command:
    """Return what runs `command` with `env`, in the sandbox if the call belongs there."""
    found = wall(runtime)
    if not found:
        return child.Command(command, env)
    return sandbox.confined(found.box, command, env, found.temporary, found.temporary)


def said(runtime: Runtime, printed: str) -> str:
    """Return what the sandbox has denied, by what a command has `printed`; "" if nothing was."""
    found = wall(runtime)
    if not found:
        return ""
    from harness_lib.system.processes import denied  # noqa: PLC0415 (most commands do not fail)

    refused = denied.found(printed, found.box, str(found.temporary), runtime.env)
    return f"[the sandbox denied: {', '.join(map(str, refused))}; {_WAY_OUT}]" if refused else ""


_WAY_OUT = "the user can allow it by a rule in settings.json, or by hs --sandbox off"


def place_of(runtime: Runtime, path: Path) -> Path:
    """Return where the file `path` is for a call: commands may have a directory of temporary files."""
    found = wall(runtime)
    if not found or found.box.engine != "bubblewrap" or os.path.lexists(path):
        return path
    real = os.path.realpath(path)
    for top in engines.PRIVATE[:2]:
        if engines.is_within(real, top) and not _is_below(real, *found.box.writable, *found.box.shown):
            return found.temporary / os.path.relpath(real, top)
    return path


def problem(runtime: Runtime, path: Path, *, writes: bool = False) -> str:
    """Return why a call may not read or write `path` in this process; "" if it may."""
    found = wall(runtime)
    if not found:
        return ""
    real, box = os.path.realpath(path), found.box
    if _is_below(real, *box.secret):
        return f"the sandbox denied: read {path}; {_WAY_OUT}"
    may_write = _is_below(real, *box.writable, str(found.temporary)) and not _is_below(real, *box.protected)
    return f"the sandbox denied: write {path}; {_WAY_OUT}" if writes and not may_write else ""


def _is_below(path: str, *tops: str) -> bool:
    return engines.is_within(path, *map(os.path.realpath, tops))

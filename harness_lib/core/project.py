"""Look at the project around the list: can work be committed, are its checks sound; run commands in it."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from harness_lib import checks, errors, typed
from harness_lib.agents import registry
from harness_lib.checks import check_of
from harness_lib.core import ownership, quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.rules import attempts, input_files, rechecks
from harness_lib.state.api import Questions
from harness_lib.system import fs
from harness_lib.system.git import calls, status
from harness_lib.system.git.repository import Git
from harness_lib.system.place import data_home, find_root, own_files, roots
from harness_lib.system.processes import child, denied, environment, runner, sandbox, sandbox_places
from harness_lib.task import Status, Task
from harness_lib.text import Strings, some

CURE_IGNORED = "Add them to .gitignore, or type: harness init --gitignore"


def closed_git(git: Git) -> Path | None:
    """Return the git directory that cannot be written from here, if there is one."""
    places = dict.fromkeys((git.common_dir, git.git_dir, git.common_dir / "objects"))
    return next((place for place in places if place.is_dir() and not fs.can_write(place)), None)


def require_writable_git(ctx: Context, git: Git) -> None:
    """Raise EnvSetupError, with the cure, if no commit can be made from here."""
    place = closed_git(git)
    if place:
        message = f"{place} is not writable from here, so no work could be kept. Nothing was changed."
        raise EnvSetupError(message, cure_closed_git(ctx, git, place))


def cure_closed_git(ctx: Context, git: Git, place: Path) -> str:
    """Return what to do about the closed `place`."""
    writable = registry.WRITABLE.get(ctx.agent or "")
    if not writable:
        command = f"ls -ld {typed.word(place)}"
        return f"Make it writable, or start the agent so that its sandbox allows it ({command})."
    if git.git_dir == git.common_dir:
        return writable([str(git.common_dir)])
    root = roots.find(ctx.env, ctx.cwd)
    return writable([*([str(root.path)] if root else []), str(git.common_dir), str(git.git_dir)])


def offer_ignored(git: Git) -> str | None:
    """Return which lines are missing, in a sentence; None if none is."""
    lines = status.offered_rules(git)
    return f"git does not ignore {', '.join(lines)} here." if lines else None


def own_names(root: roots.Root, git: Git) -> tuple[list[str], list[str]]:
    """Return the files of harness for an ignore file, and those of its private directory."""
    own = tuple(name for name in roots.HARNESS_NAMES if name != find_root.PRIVATE_DIR)
    return _relative(root, git, own), _relative(root, git, roots.PRIVATE_PATTERNS)


def adopt(ctx: Context) -> None:
    """Do what `init` does: let git ignore the files of harness here, and linked work trees find the list."""
    # Nothing of harness's own is committed without it, so a list outside of git, or one whose git directory
    # is closed, is no reason to stop the work.
    with suppress(EnvSetupError, OSError):
        git = ctx.git_of_list
        names, private = own_names(ctx.root, git)
        git.exclude([*names, *private], sign=private)
        # Another list of the repository may be noted, and that of the main work tree is for all.
        if git.git_dir == git.common_dir and not (git.common_dir / find_root.NOTE).exists():
            roots.remember(ctx.root.path, git.common_dir)


def _relative(root: roots.Root, git: Git, names: Sequence[str]) -> list[str]:
    """Return `names` for an ignore file, with pattern characters of the folder's name escaped."""
    inside = root.path.relative_to(git.top)
    folder = Path(re.sub(r"([\\*?\[])", r"\\\1", str(inside)))
    return [f"/{folder / name}{'/' if name.endswith('/') else ''}" for name in names]


TIMEOUT_SECONDS = 600.0


def has_init_script(ctx: Context) -> bool:
    """Return whether the project has the script."""
    return ctx.root.init_script.is_file()


def run_init_script(ctx: Context) -> runner.Finished:
    """Run the script in the caller's work tree; the list must be trusted.

    Raises UntrustedError if machines share it, and the script has changed since.
    """
    trust.require_script(ctx)
    script = ctx.root.init_script
    quoted = typed.word(script)
    return runner.run(
        quoted if os.access(script, os.X_OK) else f"sh {quoted}",
        cwd=ctx.git.top,
        log=ctx.root.logs / "harness-init.log",
        timeout=TIMEOUT_SECONDS,
        env=environment.with_paths(ctx.env, search_paths(ctx)),
        clock=ctx.clock,
    )


SOURCES = "HARNESS_SOURCES"
# Python runs the `sitecustomize` in it at its start.
AT_START = Path(checks.__file__).with_name("python")


def search_paths(ctx: Context) -> dict[str, Strings]:
    """Return what comes first in search paths and options, by variable, for a command in our work trees.

    PYTHONPATH and editable installs name directories of the user's checkout, whose files Python would import;
    mise works only in directories that its user trusts. A daemon of Gradle that runs builds for several work
    trees would end with one of them, or work outside of the sandbox. In one directory for all, Cargo takes
    what it has built later of the same file in another work tree.
    Source: PEP 610, "direct_url.json"; Python's documentation, `site`; mise's, `trusted_config_paths`.
    """
    top = ctx.git.top
    if find_root.worker(data_home.directory(ctx.env), str(top)) is None:
        return {}
    checkout = ctx.main.top
    places = dict.fromkeys(os.path.realpath(place) for place in _named_to_python(ctx.env, checkout))
    pairs = [
        (place, str(top / Path(place).relative_to(checkout)))
        for place in places
        if Path(place).is_relative_to(checkout)
    ]
    first: dict[str, Strings] = {
        "MISE_TRUSTED_CONFIG_PATHS": (str(top),),
        "GRADLE_OPTS": ("-Dorg.gradle.daemon=false",),
    }
    if _shares_target(ctx.env):
        # One beside no `Cargo.toml` would be new to git.
        place = top if (top / "Cargo.toml").exists() else top / ".git"
        first["CARGO_TARGET_DIR"] = (str(place / "target"),)
    if sources := [pair for pair in pairs if _records(pair[1]) <= _records(pair[0])]:
        first |= {"PYTHONPATH": (str(AT_START),), SOURCES: tuple(chain.from_iterable(sources))}
    return first


def _shares_target(env: environment.Env) -> bool:
    """Return whether the user has Cargo build all projects in one directory."""
    home = Path(env.get("CARGO_HOME") or Path(env.get("HOME") or Path.home(), ".cargo"))
    settings = (line for name in ("config.toml", "config") for line in _lines(home / name))
    named = {"CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"} & env.keys()
    return bool(named) or any(re.match(r"\s*(?:build\.)?target-dir\s*=", line) for line in settings)


def _records(folder: str) -> set[str]:
    """Return the records of packages in `folder`: a new one could name a plugin for a test runner."""
    return {path.name for path in Path(folder).glob("*-info")}


def _named_to_python(env: environment.Env, checkout: Path) -> Iterator[str]:
    """Yield the directories that PYTHONPATH and the environments of `env` and `checkout` name to Python."""
    search, on_path = (
        [Path(entry) for entry in env.get(name, "").split(os.pathsep) if entry.startswith("/")]
        for name in ("PYTHONPATH", "PATH")
    )
    yield from map(str, search)
    prefixes = [place.parent for place in on_path]
    # `pyenv activate` sets the variable only, and its shims start the Python that runs harness, too.
    others = [*checkout.glob("*/.venv"), *checkout.glob("*/venv"), checkout / ".venv", checkout / "venv"]
    others += [Path(env.get("VIRTUAL_ENV", "/")), Path(sys.prefix)]
    for prefix in dict.fromkeys((*prefixes, *others)):
        for site in sorted(prefix.glob("lib/python3*/*-packages")):
            yield from (line for file in site.glob("*.pth") for line in _lines(file) if line.startswith("/"))
            yield from _editable(site)


def _editable(site: Path) -> Iterator[str]:
    """Yield the sources of the packages in `site` that were installed with `pip install --editable`."""
    for record in site.glob("*.dist-info/direct_url.json"):
        with suppress(ValueError, RecursionError):
            match json.loads("".join(_lines(record))):
                case {"url": str(url), "dir_info": {"editable": True}}:
                    place = Path(unquote(urlsplit(url).path))
                    yield str(place / "src" if (place / "src").is_dir() else place)


def _lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text("utf-8", "replace").splitlines()
    return []


def prepare(ctx: Context) -> runner.Finished | None:
    """Run the script, and once more if it fails; None where there is none.

    Source: docs/protocol.md, "Error Handling".
    """
    if not has_init_script(ctx):
        return None
    ctx.busy(f"running {ctx.root.init_script.name} …")
    first = run_init_script(ctx)
    return first if first.ok else run_init_script(ctx)


def why_failed(ctx: Context, finished: runner.Finished) -> str:
    """Return the end of what the script has printed, or how it ended, and what its sandbox denied."""
    refused = denied.said(finished.tail, ctx.env, ctx.git.top)
    how = "it took too long" if finished.timed_out else f"it ended with {finished.returncode}"
    printed = quoting.one_line(finished.tail)
    return " ".join(filter(None, (printed or f"{how} and printed nothing.", refused)))


CALL_SECONDS = 120.0
NOTHING: Mapping[str, str] = MappingProxyType({})


def call(ctx: Context, command: str, variables: Mapping[str, str] = NOTHING) -> tuple[bool, str]:
    """Run a shell command of at most CALL_SECONDS; return whether it succeeded, and its output.

    It talks to a remote, outside of every sandbox. The user's hooks of git run: one of them may be there to
    refuse a push.
    """
    env = {**calls.clean_env(ctx.env), **variables, sandbox.VARIABLE: ""}
    log = ctx.root.logs / "merge.log"
    try:
        ended = runner.run(command, cwd=ctx.main.top, log=log, timeout=CALL_SECONDS, env=env)
    except (HarnessError, OSError) as error:
        return False, errors.describe(error) if isinstance(error, OSError) else error.message
    return ended.ok, f"no answer for {CALL_SECONDS:.0f} seconds" if ended.timed_out else ended.tail


SHORT = 80
OPEN: tuple[Status, ...] = ("pending", "in_progress")
MOST_BYTES = 1_000_000


def doubts(ctx: Context, questions: Questions) -> Iterator[str]:
    """Yield one sentence per doubt about the tasks that are still to be done."""
    work_tree = _WorkTree(ctx)
    tasks = questions.search()
    for task in tasks:
        if not task.is_done:
            yield from _about(ctx, work_tree, task)
    yield from in_common(ctx, tasks)


def _about(ctx: Context, work_tree: _WorkTree, task: Task) -> Iterator[str]:
    check = check_of(task)
    if attempts.asks_a_person(task):
        return
    if not check.is_given:
        yield f"{task.id} has no check: {ownership.give_check(ctx, task)}"
        return
    cwd = task.validation.cwd or ""
    if not (work_tree.top / cwd).is_dir():
        yield f"{task.id}: validation.cwd {_quoted(cwd)} is not a directory"
        return
    needed = (work_tree.missing(text or "", directory or "") for text, directory in check.commands())
    for missing in filter(None, needed):
        yield f"{task.id}: its check needs {_quoted(missing)}, which is not on the PATH"
    yield from cannot_fail(work_tree.top, task)
    for glob in task.validation.protect:
        if glob not in input_files.WORDS and not work_tree.matches(glob, cwd):
            yield f"{task.id}: validation.protect {_quoted(glob)} matches no file"


# Of the whole work tree, not of named files or commits.
_UNCHANGED = re.compile(r"git (diff( HEAD)? --(exit-code|quiet)|status --porcelain)(?= *($|[;&|)]))")


def cannot_fail(top: Path, task: Task) -> Iterator[str]:
    """Yield a sentence if the check of `task`, which runs below `top`, passes whatever is done, or never.

    Never, in a run, where it names `top`: there it runs in the work tree of a worker. And never where git is
    to find no change: the work is committed after its check.
    """
    # An environment stays where it was made.
    names = re.compile(rf"(?<![\w./-]){re.escape(str(top))}(?!/(?:{sandbox_places.SHOWN})\b)(?![\w.-])")
    for text, directory in check_of(task).commands():
        # What a task in progress has in its files may be its work.
        holds = [] if task.status == "in_progress" else [partial(_holds, top / (directory or ""))]
        reason = input_files.why_vacuous(text or "", *holds)
        if reason:
            yield f"{task.id}: its check cannot fail: {quoting.one_line(reason, SHORT)}"
        elif mistake := _mistake(text or ""):
            yield f"{task.id}: the shell cannot read its check: {quoting.one_line(mistake, SHORT)}"
        elif names.search(text or ""):
            yield f"{task.id}: its check names {top}, where a run's agents do not work: use relative paths"
        elif changed := _UNCHANGED.search(text or ""):
            why = f"({changed[0]}) fails on the work itself, which is committed after it"
            yield f"{task.id}: its check {why}: use the tool's own way, such as prettier --check"


def _mistake(command: str) -> str:
    """Return what the shell says of a command that it cannot read; it is asked where quotes may not match."""
    with suppress(ValueError):
        shlex.split(command)
        return ""
    said = child.ask(("/bin/sh", "-n", "-c", command), env={}, cwd=Path("/"), seconds=CALL_SECONDS)
    return said.complaint.strip() if said.code else ""


def without_check(tasks: Iterable[Task]) -> Iterator[str]:
    """Yield a sentence about those of `tasks` that need a check and have none."""
    bare = [task.id for task in tasks if not (check_of(task).is_given or attempts.asks_a_person(task))]
    if bare:
        names = some(bare)
        give = typed.give_check(bare[0])
        yield f"Without a check, so they cannot be completed: {names}. Give each one: {give}"


def in_common(ctx: Context, tasks: Iterable[Task], added: Collection[str] | None = None) -> Iterator[str]:
    """Yield a sentence for each check that several open `tasks` have; with `added`, where one of these is."""
    groups: dict[rechecks.Key, list[Task]] = {}
    for task in tasks:
        if task.status in OPEN and task.repairs is None and check_of(task).is_given:
            groups.setdefault(rechecks.key(task), []).append(task)
    for (text, _), group in groups.items():
        ids = sorted(task.id for task in group)
        if (
            len(ids) == 1
            or not (added is None or set(added).intersection(ids))
            or input_files.why_vacuous(text or "")
        ):
            continue
        last = max(group, key=lambda task: task.id)
        yield (
            f"{len(ids)} open tasks have the same check ({some(ids)}): each fails while the tests of "
            f"another are red. Give each its own: {ownership.give_check(ctx, last)} "
            f"(now: {quoting.one_line(text or '', SHORT)})"
        )


def _holds(directory: Path, text: str, name: str) -> bool:
    try:
        return text.encode() in own_files.read(directory / name, MOST_BYTES)
    except OSError:
        return False


def _quoted(text: str) -> str:
    return repr(quoting.one_line(text, SHORT))


class _WorkTree:
    """The work tree; what was asked before is remembered, as thousands of tasks share a few commands."""

    def __init__(self, ctx: Context) -> None:
        self._git = None
        with suppress(EnvSetupError):
            self._git = ctx.git
        self.top = self._git.top if self._git else ctx.root.path
        self._env = ctx.env
        # By check or glob, and directory.
        self.missing = cache(self._missing)
        self.matches = cache(self._matches)

    def _missing(self, check: str, cwd: str) -> str | None:
        """Return the first word of `check` if there is no such program."""
        return environment.missing_command(check, cwd=self.top / cwd, env=self._env)

    def _matches(self, glob: str, cwd: str) -> bool:
        """Say whether a file fits `glob`, read as the gate of a claim reads it."""
        if not self._git:
            return True
        spec = f":(top,glob){os.path.normpath(os.path.join(cwd, glob.lstrip('/')))}"  # noqa: PTH118 (no path yet)
        return bool(self._git.run("ls-files", "-z", "--cached", "--others", "--", spec, check=False).stdout)

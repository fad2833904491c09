"""Run a command in a sandbox: it writes only to its work tree, its temporary directory and caches.

A run keeps its `Sandbox` in the variable VARIABLE of its environment. A command that starts in one of its
work trees starts in the sandbox, and does not get the variable. `engines.py` makes the command lines.
Source: docs/sandbox.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from harness_lib.errors import EnvSetupError
from harness_lib.system.place import data_home
from harness_lib.system.processes import child, engines, environment
from harness_lib.system.processes.engines import (
    ENGINES,
    PRIVATE,
    TITLES,
    Engine,
    Grants,
    is_within,
)
from harness_lib.system.processes.sandbox_places import (
    CLOUDS,
    CREDENTIALS,
    LOGIN,
    SOCKETS,
    Project,
    caches_of,
    home_of,
    listening_sockets,
    run_by_git,
    secrets_in,
    secrets_of,
    temporary_paths,
    without_signing,
)
from harness_lib.text import Strings

Network = Literal["open", "loopback", "none"]
NETWORKS: tuple[Network, ...] = get_args(Network)
Mode = Literal["off", "auto", "require", "bubblewrap", "nono"]
MODES: tuple[Mode, ...] = get_args(Mode)
# Where none was chosen: on macOS no sandbox was tried.
DEFAULT: Mode = "off" if sys.platform == "darwin" else "auto"
# Chooses the mode, of runs and of `hs`.
CHOICE = "HARNESS_SANDBOX"
VARIABLE = "HARNESS_IN_SANDBOX"
# Tells a command in a sandbox which engine confines it.
INSIDE = "HARNESS_SANDBOXED_BY"
TRIAL_SECONDS = 60.0


class Sandbox(NamedTuple):
    """What a run allows: a command may write its work tree, which is PLACES/RUN/NUMBER for these `places`.

    All paths are absolute. `writable` are further ones that it may write, `secret` those that it may not
    read, `shown` those that it may read although they are below a secret or a temporary directory. `kept`
    are the names of credentials that stay in its environment. `network` is for checks.
    `protected` are those that it may not write although they are below a writable one; nono cannot do this.
    `checkout` is the user's own, and its git directory, for what runs there: `harness-init.sh`, cleanups.
    """

    engine: Engine
    places: str
    writable: Strings = ()
    secret: Strings = ()
    shown: Strings = ()
    kept: Strings = ()
    network: Network = "open"
    protected: Strings = ()
    checkout: Strings = ()

    def __str__(self) -> str:
        network = "open" if self.network == "open" else f"{self.network_of_checks} for checks"
        writes = "its work tree, its temporary directory, caches"
        return f"{TITLES[self.engine]}; writes: {writes}; network: {network}"

    @property
    def network_of_checks(self) -> Network:
        """The network that the engine can give: nono cannot keep only the loopback interface."""
        return "open" if self.engine == "nono" and self.network == "loopback" else self.network

    def tree(self, cwd: Path) -> Path | None:
        """Return the work tree of a run around `cwd`; None if there is none."""
        try:
            run, number, *_ = cwd.relative_to(self.places).parts
        except ValueError:
            return None
        return Path(self.places, run, number)

    def in_checkout(self) -> Sandbox:
        """Return the sandbox of a command in the user's checkout: it may write there, and read all of it."""
        top, git = self.checkout
        kept = [path for path in self.secret if not is_within(path, top) or is_within(path, git)]
        protected = [
            *run_by_git(Path(git)),
            *(f"{top}/{name}" for name in (LOGIN.parent, "harness-tasks.json")),
        ]
        return self._replace(
            secret=(*kept, f"{top}/{LOGIN}"),
            writable=(*self.writable, git),
            protected=tuple(path for path in protected if not is_within(path, *self.writable)),
        )

    def removed(self, env: environment.Env) -> list[str]:
        """Return the names of the credentials in `env` that no command gets."""
        names = CREDENTIALS.union(*(cloud.variables for cloud in CLOUDS.values()))
        return sorted(name for name in names.difference(self.kept) if env.get(name))

    def grants(self, tree: Path, temporary: Path, env: environment.Env, argv: Sequence[str]) -> Grants:
        """Return what `argv` may read and write in the work tree `tree`."""
        there = list(filter(os.path.lexists, self.writable))
        named = temporary_paths(argv, env)
        # The link beside a work tree leads to its project. harness itself, or its Python, may be below /tmp.
        shown = [*self.shown, f"{tree}.git", data_home.HOME, sys.prefix]
        hidden = [*self.secret, *SOCKETS]
        home = str(home_of(env))
        if self.engine == "bubblewrap":
            own = (str(tree), str(temporary), *there)
            hidden += (path for path in listening_sockets(home) if not is_within(path, *own))
        shown += [path for path in named if not is_within(path, *self.secret)]
        return Grants(
            str(temporary),
            tuple(dict.fromkeys((str(tree), *there))),
            tuple(dict.fromkeys(filter(os.path.lexists, hidden))),
            tuple(dict.fromkeys(filter(os.path.lexists, shown))),
            tuple(filter(os.path.lexists, self.protected)),
            home if self.secret else "",
        )


def required(mode: Mode, env: environment.Env) -> Engine | None:
    """Return the engine of `mode`; None for none. Raises EnvSetupError if it has to start and does not."""
    engine, failures = find(env, [each for each in engines.ENGINES if mode in ("auto", "require", each)])
    if engine is None and mode not in ("off", "auto"):
        raise EnvSetupError(
            f"No sandbox can be started on this machine. {failures}",
            "Install bubblewrap (the program is bwrap), or go without one: --sandbox off",
        )
    return engine


def find(env: environment.Env, wanted: Sequence[Engine] = ENGINES) -> tuple[Engine | None, str]:
    """Return the first of `wanted` that can start a command on this machine, and why the others cannot."""
    failures = []
    for engine in wanted:
        with _directory() as place:
            failure, _ = trial(Sandbox(engine, place), ["true"], env, Path(place))
        if failure is None:
            return engine, ""
        failures.append(f"{engine}: {failure}")
    return None, "; ".join(failures)


def _directory() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary directory, removed as far as possible."""
    return tempfile.TemporaryDirectory(prefix="harness-", ignore_cleanup_errors=True)


# Why a command failed, None if it did not, and the lines that it printed.
Verdict = tuple[str | None, list[str]]


def trial(sandbox: Sandbox, argv: Sequence[str], env: environment.Env, tree: Path) -> Verdict:
    """Run `argv`, which takes a moment, in `tree` as its work tree."""
    with _directory() as temporary, ExitStack() as started:
        try:
            grants = sandbox.grants(tree, Path(temporary), env, argv)
            ready = engines.command(sandbox.engine, argv, grants, env, closed=False)
            process = child.start_noted(ready, lambda _: None, cwd=tree, output=child.PIPE)
            started.enter_context(process)
            # Before it is waited for, also after an interrupt.
            started.callback(process.kill)
            output, _ = process.communicate(timeout=TRIAL_SECONDS)
        except (EnvSetupError, OSError, subprocess.TimeoutExpired) as error:
            return str(error), []
    printed, code = output.decode("utf-8", "replace").splitlines(), process.returncode
    return ((printed[-1] if printed else f"exit {code}") if code else None), printed


def of_run(
    engine: Engine,
    env: environment.Env,
    places: Path,
    data: Path,
    project: Project,
    *,
    more: Strings = (),
    kept: Strings = (),
    network: Network = "open",
) -> Sandbox:
    """Return the sandbox of a run whose work trees are below `places`.

    `data` is the data directory of harness. `more` may be written, too, even where it is secret otherwise.
    `kept` stay in the environment.
    """
    secret = [*secrets_of(env), places]
    secret += [data / name for name in ("hidden", ".auth.json", ".auth-cache.json")]
    return Sandbox(
        engine,
        str(places),
        (*caches_of(env), *(os.path.realpath(path) for path in more)),
        (*map(str, secret), *secrets_in(project)),
        tuple(map(str, (home_of(env), data, project.top, project.git))),
        kept,
        network,
        checkout=(str(project.top), str(project.git)),
    )


def of_session(
    engine: Engine,
    env: environment.Env,
    writable: Collection[Path],
    data: Path,
    git: Path | None,
    credentials: Collection[Path],
) -> Sandbox:
    """Return the sandbox of a session in the user's own checkout, which is among the `writable` paths.

    `git` is the common git directory, `credentials` are those of `hs`.
    """
    others = [path for path in (data / "worktrees",) if path not in writable]
    secret = [*secrets_of(env), *credentials, data / "hidden", *others]
    secret += [path / LOGIN for path in writable]
    places = [str(path) for path in (*writable, *([git] if git else []))]
    written = (*caches_of(env), *map(os.path.realpath, places))
    shown = (str(home_of(env)), str(data))
    protected = tuple(run_by_git(git)) if git else ()
    return Sandbox(engine, "", written, tuple(map(str, secret)), shown, protected=protected)


def noted(sandbox: Sandbox) -> dict[str, str]:
    """Return the variable with which commands start in `sandbox`."""
    return {VARIABLE: json.dumps(sandbox)}


def of(env: environment.Env) -> Sandbox | None:
    """Return the sandbox that `env` names; None if it names none."""
    text = env.get(VARIABLE)
    if not text:
        return None
    values: list[Any] = json.loads(text)
    return Sandbox._make(tuple(each) if isinstance(each, list) else each for each in values)


def placed(env: environment.Env, cwd: Path) -> tuple[Sandbox, Path] | None:
    """Return the sandbox in which a command of a run starts in `cwd`, and the tree that it may write.

    None: it starts outside, as `env` names no sandbox, or `cwd` belongs to nothing that is confined.
    """
    box = of(env)
    if not box:
        return None
    if tree := box.tree(cwd):
        return box, tree
    if box.checkout and is_within(os.path.realpath(cwd), os.path.realpath(box.checkout[0])):
        return box.in_checkout(), Path(box.checkout[0])
    return None


def widened(env: environment.Env, paths: Iterable[str], *, clouds: Iterable[str] = ()) -> dict[str, str]:
    """Return the variable of `env` for a command that may also write `paths`, which begin at the home.

    It may read those of them that are secret otherwise, and has the credentials of `clouds`.
    """
    sandbox = of(env)
    if not sandbox:
        return {}
    home = home_of(env)
    own = [CLOUDS[name] for name in clouds]
    opened = [str(home / path) for path in (*paths, *(path for cloud in own for path in cloud.paths))]
    secret = (path for path in sandbox.secret if not is_within(path, *opened))
    return noted(
        sandbox._replace(
            writable=(*sandbox.writable, *opened),
            secret=tuple(secret),
            kept=(*sandbox.kept, *(name for cloud in own for name in cloud.variables)),
        )
    )


@contextmanager
def entered(command: str, env: environment.Env, cwd: Path) -> Iterator[child.Command]:
    """Yield what runs `sh -c command`, in the sandbox of `env` if it has one."""
    inside = {name: value for name, value in env.items() if name != VARIABLE}
    place = placed(env, cwd) if VARIABLE in env else None
    argv = ["sh", "-c", command]
    if not place:
        yield child.Command(argv, inside)
        return
    with _directory() as temporary:
        yield confined(place[0], argv, inside, place[1], Path(temporary))


def confined(
    sandbox: Sandbox, argv: Sequence[str], env: environment.Env, tree: Path, temporary: Path
) -> child.Command:
    """Return what runs `argv` in `sandbox`, which may write `tree`.

    `temporary` is the directory for its temporary files.
    """
    removed = sandbox.removed(env)
    inside = {name: value for name, value in env.items() if name not in removed}
    inside |= {**without_signing(inside), INSIDE: sandbox.engine}
    closed = environment.CHECKED in env and sandbox.network_of_checks != "open"
    grants = sandbox.grants(tree, temporary, inside, argv)
    # Under bubblewrap the command has its temporary directory there.
    inside["TMPDIR"] = PRIVATE[0] if sandbox.engine == "bubblewrap" else str(temporary)
    # Java heeds no TMPDIR.
    options = f'"-Djava.io.tmpdir={inside["TMPDIR"]}" {inside.get("JAVA_TOOL_OPTIONS", "")}'
    inside["JAVA_TOOL_OPTIONS"] = options.rstrip()
    # mise fails if it cannot note which projects it has seen.
    inside["MISE_STATE_DIR"] = f"{inside['TMPDIR']}/mise"
    return engines.command(sandbox.engine, argv, grants, inside, closed=closed)

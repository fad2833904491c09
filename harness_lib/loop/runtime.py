"""The state of a run of hs: its environment, its directory, its session, and the table of its plugins.

The table is (kind, stage, name) -> plugin, built-in or a program alike. A plugin of a more local source
replaces one of the same name, built-in ones included.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar

import harness_lib
from harness_lib.loop import context, disk
from harness_lib.loop.session import NoSession, Session, Stream
from harness_lib.system.place import data_home
from harness_lib.text import harmless

P = ParamSpec("P")
T = TypeVar("T")
Kind = Literal["commands", "tools", "hooks.d", "providers"]
Key = tuple[Kind, str, str]
# The origin of a plugin that is no file.
BUILT_IN = "built-in"


class Plugin(NamedTuple):
    """An entry of the table; `target` is a Hook, a Tool, a Provider or a command, by its kind."""

    kind: Kind
    stage: str
    name: str
    origin: str
    target: Any

    @property
    def is_ours(self) -> bool:
        """Whether it is a function of this package."""
        return self.origin == BUILT_IN


@dataclass
class Table:
    """The plugins by their keys. `all` also holds overridden ones, in the order of sources."""

    # The names of the only tools to add; None: all.
    allowed: list[str] | None = None
    entries: dict[Key, Plugin] = field(default_factory=dict)
    all: list[Plugin] = field(default_factory=list)

    def add(self, plugin: Plugin) -> None:
        """Add `plugin`, which overrides one of the same name."""
        self.all.append(plugin)
        if plugin.kind != "tools" or self.allowed is None or plugin.name in self.allowed:
            self.entries[plugin[:3]] = plugin

    def of(self, kind: Kind, stage: str = "") -> list[Plugin]:
        """Return the plugins of a kind (and stage) in the order of their names as text."""
        return [self.entries[key] for key in sorted(key for key in self.entries if key[:2] == (kind, stage))]

    def is_ours(self, stage: str) -> bool:
        """Return whether all hooks of `stage` are built in."""
        return all(hook.is_ours for hook in self.of("hooks.d", stage))

    def find(self, kind: Kind, name: str) -> Plugin | None:
        """Return the plugin `name` of a kind that has no stages."""
        return self.entries.get((kind, "", name))


BUNDLED = Path(__file__).with_name("bundled")
ACCOUNT_FILE = "HARNESS_ACCOUNT_FILE"
# Tells `harness` which session has started it.
SESSION_VARIABLE = "HS_SESSION_ID"
_KEPT = "\n\t"


@dataclass
class Runtime:
    """One run. `env` is the environment that hs was given; what plugins see is `variables`."""

    env: dict[str, str]
    cwd: Path
    # "" until the stage `resolve` has found them.
    provider: str
    model: str
    # HARNESS_HOME and HARNESS_ROOT.
    home: Path
    root: Path
    # The directory of the sessions, which may not exist, and the session that the run goes on in.
    sessions: Path = Path()
    session: Session = field(default_factory=partial(NoSession, Path("/")))
    # The file of events; without a session nothing is written.
    stream: Stream = field(default_factory=Stream)
    stage: str = ""
    sources: list[str] = field(default_factory=list)
    # Also those of packs that are not in use.
    unscoped: list[str] = field(default_factory=list)
    # The bundled pack `core` is not among the sources, so what it holds is left out.
    without_core: bool = False
    table: Table = field(default_factory=Table)
    # The MCP servers (mcp.servers.Server) of these sources.
    servers: list[Any] = field(default_factory=list)
    requests: int = 0
    # The first message of this turn, why the turn stopped, and the text in place of the prompts.
    first: int = 1
    stop: str = ""
    system: str | None = None
    # The approval mode if no setting names one, and the function (an asking.Asker) that asks the user.
    approve: str = "auto"
    asker: Callable[[Any], Any] | None = None
    # The file for the cost of this run, read by the hs that has started it as a subagent.
    account_file: str = ""
    # Messages typed while a turn is under way; listeners of notices.
    typed_meanwhile: Callable[[], list[str]] = list
    notices: list[Callable[[str], None]] = field(default_factory=list)
    # Nothing has run since the plugins were looked for.
    is_fresh: bool = False
    # Caches of plugins between two states: schemas, connections, files that were read.
    kept: dict[str, Any] = field(default_factory=dict)
    # What ends with the run, such as the directory for temporary files.
    opened: ExitStack = field(default_factory=ExitStack, repr=False)
    # What was looked up once since plugins were found.
    found: dict[object, Any] = field(default_factory=dict, repr=False)

    def enter(self, session: Session) -> None:
        """Go on in `session`."""
        self.session, self.stream = session, Stream(session.directory / ".stream")

    @property
    def work_directory(self) -> Path:
        """Where tools run: the session's directory, wherever it was resumed from."""
        return self.session.cwd if self.session else self.cwd

    def place(self, text: str) -> Path:
        """Return the path that `text` names, seen from the session's directory; ~ is a home directory."""
        # Not by pathlib: it raises an error for an unknown user.
        return self.work_directory / os.path.expanduser(text)  # noqa: PTH111

    def spent(self) -> context.Account:
        """Return what the turn has cost so far."""
        return context.total(message for message in self.session.messages() if message.seq >= self.first)

    def close(self) -> None:
        """Close the connection to the provider, and what else was opened."""
        for client in self.kept.pop("clients", {}).values():
            client.close()
        self.opened.close()

    def variables(self) -> dict[str, str]:
        """Return the environment of a plugin that is a program."""
        directory = str(self.session.directory) if self.session else ""
        return {
            **self.env,
            "HARNESS_PROVIDER": self.provider,
            "HARNESS_MODEL": self.model,
            "HARNESS_SOURCES": ":".join(self.sources),
            "HARNESS_STAGE": self.stage,
            "HARNESS_SESSION": directory,
            "SESSION_DIR": directory,
        }

    def harness_environment(self) -> dict[str, str]:
        """Return the environment of the user's commands; `harness` finds the session in it."""
        from harness_lib.system.processes import owner  # noqa: PLC0415 (only where something is run)

        env = owner.without_session(self.variables())
        # No command may ask the user.
        env.pop("HARNESS_ASK", None)
        return {**env, SESSION_VARIABLE: self.session.id} if self.session else env

    def notice(self, text: str) -> None:
        """Tell the user in the log, and in the prompt or editor that does not show it."""
        self.log(f"hs: {text}")
        for notify in self.notices:
            notify(text)

    def notice_once(self, text: str) -> None:
        """Tell the user what was not told yet in this run."""
        told: set[str] = self.kept.setdefault("told", set())
        if text not in told:
            told.add(text)
            self.notice(text)

    def keep(self, path: Path, data: bytes) -> None:
        """Write a file into home; if that fails, report it once and continue."""
        try:
            disk.write(path, data)
        except OSError as error:
            self.notice_once(f"{path} cannot be written ({error.strerror}); hs goes on without it.")

    def log(self, line: str) -> None:
        """Append a line to HARNESS_LOG; continue if it cannot be written."""
        target = self.env["HARNESS_LOG"]
        if target == "/dev/stderr":
            with suppress(OSError):
                # The output of a tool must not move the cursor of the terminal.
                sys.stderr.write(f"{harmless(line, keep=_KEPT)}\n")
            return
        try:
            with disk.appending(target) as stream:
                stream.write(f"{line}\n".encode("utf-8", "replace"))
        except OSError:
            return


def once(look_up: Callable[Concatenate[Runtime, P], T]) -> Callable[Concatenate[Runtime, P], T]:
    """Call `look_up` once for the same sources, provider and model, until plugins are found anew."""

    @wraps(look_up)
    def known(runtime: Runtime, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = (look_up, *runtime.sources, runtime.provider, runtime.model, args, *kwargs.items())
        if key not in runtime.found:
            runtime.found[key] = look_up(runtime, *args, **kwargs)
        found: T = runtime.found[key]
        return found

    return known


def start(environ: dict[str, str] | os._Environ[str], cwd: Path) -> Runtime:
    """Return a run in which every variable of the protocol is set, by default if need be."""
    env = dict(environ)
    home = Path(env.get("HOME") or Path("~").expanduser())
    usual = {"ROOT": str(BUNDLED), "HOME": str(home / ".harness"), "LOG": "/dev/stderr"}
    for name, place in usual.items():
        # Programs also start in other directories.
        env[f"HARNESS_{name}"] = str(cwd / (env.get(f"HARNESS_{name}") or place))
    if not environ.get("HARNESS_HOME"):
        env[data_home.ASSUMED] = env["HARNESS_HOME"]
    env["HARNESS_MAX_TURNS"] = env.get("HARNESS_MAX_TURNS") or "100"
    env["HARNESS_VERSION"] = harness_lib.__version__
    # Removed from the environment: it is not meant for the programs of this run.
    account_file = env.pop(ACCOUNT_FILE, "")
    run = Runtime(
        env,
        cwd,
        env.get("HARNESS_PROVIDER", ""),
        env.get("HARNESS_MODEL", ""),
        home=Path(env["HARNESS_HOME"]),
        root=Path(env["HARNESS_ROOT"]),
        account_file=account_file,
    )
    run.sessions = cwd / (env.get("HARNESS_SESSIONS") or _store(run))
    env["HARNESS_SESSIONS"] = str(run.sessions)
    return run


def _store(run: Runtime) -> Path:
    """Return the sessions of the nearest directory that has some, else those of home.

    A link is not followed: it may have come with a clone and lead to the sessions of another project.
    """
    for directory in (run.cwd, *run.cwd.parents):
        source = directory / ".harness"
        candidate = source / "sessions"
        if directory.parent == directory or source == run.home or not candidate.is_dir():
            continue
        if not (source.is_symlink() or candidate.is_symlink()):
            return candidate
        run.notice(f"{candidate} is not used for sessions: a symbolic link leads there.")
    return run.home / "sessions"

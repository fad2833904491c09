"""Identify the caller (the worker and the process that owns its session), and tell whether an owner lives.

A verb lives for milliseconds; its session belongs to the agent or the terminal that typed it.
`life` fails closed: it returns "dead" only for a process that is proven gone.
Source: docs/design.md, "Sessions and owners".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness_lib import sha256
from harness_lib.system.place import own_files
from harness_lib.system.processes import environment, process
from harness_lib.system.processes.process import Process

if TYPE_CHECKING:
    from harness_lib.agents.adapter import Signs


Life = Literal["alive", "dead", "unknown"]

MAX_NAME = 200

# These live for one command, so they cannot own a session.
_SHELLS = "sh bash zsh dash fish ksh mksh tcsh csh ash busybox"
_WRAPPERS = "env timeout gtimeout nohup nice uv uvx sudo time xargs stdbuf gstdbuf setsid harness"
# Sandboxes that an agent makes for one command.
_SANDBOXES = "bwrap unshare firejail codex-linux-san codex-linux-sandbox sandbox-exec"
# What lives for one command; a login shell is called `-bash`.
_TRANSIENT = frozenset(f"{_SHELLS} {_WRAPPERS} {_SANDBOXES}".split())

_NOBODY = Process(0, 0, "", "")

# Programs that may own a session and are not agents: a user types there. The kernel cuts these names, too.
_TERMINALS = frozenset(
    (
        *("sshd", "sshd-session", "sshd-auth", "dropbear", "mosh-server", "login", "su", "runuser"),
        *("systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "conmon", "s6-svscan"),
        *("tmux: server", "tmux", "screen", "SCREEN", "zellij", "dtach", "abduco", "script", "ttyd"),
        *("gnome-terminal-", "gnome-terminal-server", "kgx", "ptyxis-agent", "konsole", "yakuake", "tilix"),
        *("guake", "tilda", "xfce4-terminal", "mate-terminal", "lxterminal", "qterminal", "terminator"),
        *("deepin-terminal", "terminology", "xterm", "urxvt", "rxvt", "st", "sakura", "contour", "rio"),
        *("alacritty", "kitty", "wezterm-gui", "wezterm-mux-ser", "foot", "footclient", "ghostty", "warp"),
        *("code", "code-insiders", "codium", "cursor", "windsurf", "zed", "zed-editor", "java", "idea"),
        *("Terminal", "iTerm2", "Alacritty", "Ghostty", "Hyper", "Electron", "Tabby", "tabby", "Code Helper"),
        # Shells that are not transient.
        *("nu", "elvish", "xonsh", "pwsh", "emacs", "vim", "nvim"),
    )
)
# Windows starts each terminal of WSL below a process of this name, followed by a number.
_WSL = "Relay("
# The server of an editor on another machine has the name of many an agent.
_EDITOR_SERVER = "node"

# Some agents set this variable, by agreement, to their name.
AGREED = "AI_AGENT"


class Owner(NamedTuple):
    """`worker` is the name in claims; the rest proves later whether the owner process still lives.

    `pid` is 0 if no lasting process is visible: in a sandbox that lives for one command.
    """

    worker: str
    host: str
    boot_id: str
    pid: int
    pid_started: str
    agent_session_id: str | None


def current(env: environment.Env) -> Owner:
    """Return the owner of this command, from the environment `env` and the ancestors of this process."""
    host = _clean(os.uname().nodename)
    session = agent_session(env)
    owner = _owner_process(env, nameless=session is None)
    named = _clean(env.get("HARNESS_WORKER_ID", "")) or session
    worker = named or f"{machine(env)}-{owner.pid}-{_token(owner)}"
    return Owner(worker, host, process.boot_id(), owner.pid, owner.started, session)


def machine(env: environment.Env) -> str:
    """Return the name of this machine: HARNESS_MACHINE, or that of the host."""
    return _clean(env.get("HARNESS_MACHINE", "")) or _clean(os.uname().nodename)


def is_named(env: environment.Env) -> bool:
    """Return whether a user has named the worker: then another agent may have the same name later."""
    return bool(_clean(env.get("HARNESS_WORKER_ID", "")))


def ourselves(prefix: str) -> Owner:
    """Return this process as an owner, with a unique name: `prefix`, its id, and more."""
    host = _clean(os.uname().nodename)
    me = process.find(os.getpid()) or Process(os.getpid(), os.getppid(), "", "")
    worker = f"{prefix}-{me.pid}-{_token(me)}"
    return Owner(worker, host, process.boot_id(), me.pid, me.started, None)


def agent_session(env: environment.Env) -> str | None:
    """Return the session id of the agent's host, the same as in the payloads of its hooks."""
    keys = (signs.session for signs in _signs())
    return next((name for key in keys if (name := _clean(env.get(key, "")))), None)


def life(host: str, boot_id: str, pid: int, pid_started: str) -> Life:
    """Return whether the recorded process still lives, as seen from this machine.

    "unknown": another host, another pid namespace of this host, or an incomplete record.
    """
    our_boot_id = process.boot_id()
    if not host or host != _clean(os.uname().nodename) or not boot_id or not our_boot_id:
        return "unknown"
    boot, _, namespace = boot_id.partition("/")
    our_boot, _, our_namespace = our_boot_id.partition("/")
    if boot != our_boot:
        return "dead"
    if namespace != our_namespace or pid <= 0:
        return "unknown"
    running = process.find(pid)
    if not running:
        # If it takes signals it is hidden (hidepid).
        return "alive" if process.alive(pid) else "dead"
    if not pid_started:
        return "unknown"
    return "alive" if running.started == pid_started else "dead"


def without_agent(env: environment.Env) -> dict[str, str]:
    """Return `env` without all signs of the agent that runs this command, for another agent."""
    return {key: value for key, value in without_session(env).items() if key != "HARNESS_WORKER_ID"}


def without_session(env: environment.Env) -> dict[str, str]:
    """Return `env` without the signs of an agent and its session; the worker keeps its name."""
    from harness_lib.agents import registry  # noqa: PLC0415 (as in `_signs`)

    dropped = {AGREED, *registry.VARIABLES}
    return {key: value for key, value in env.items() if key not in dropped}


def in_agent(env: environment.Env) -> str | None:
    """Return the name of the agent that runs this command, if it shows a sign of itself; else None."""
    for signs in _signs():
        if any(env.get(key) for key in signs.variables):
            return signs.name
    called = {ancestor.name for ancestor in _ancestors(os.getpid())}
    named = next((signs.name for signs in _signs() if not called.isdisjoint(signs.programs)), None)
    return named or _clean(env.get(AGREED, "")) or None


def program_above(host: str, boot_id: str, pid: int, pid_started: str) -> str | None:
    """Return the name of the recorded process if it is an ancestor and may be an agent: not a terminal."""
    if (host, boot_id) != (_clean(os.uname().nodename), process.boot_id()):
        return None
    for ancestor in _ancestors(os.getpid()):
        if (ancestor.pid, ancestor.started) == (pid, pid_started):
            return None if _is_terminal(ancestor) else ancestor.name
    return None


def program_of(host: str, boot_id: str, pid: int, pid_started: str) -> str | None:
    """Return the name of the program that the recorded process runs, if it lives on this machine."""
    found = process.find(pid) if life(host, boot_id, pid, pid_started) == "alive" else None
    return found.name if found else None


def _is_terminal(ancestor: Process) -> bool:
    """Return whether a user types below `ancestor`: it is a shell, or a program that shows one."""
    name = ancestor.name
    if name == _EDITOR_SERVER:
        return os.environ.get("TERM_PROGRAM") == "vscode"
    return name.lstrip("-") in _TRANSIENT or name in _TERMINALS or name.startswith(_WSL)


def _owner_process(env: environment.Env, *, nameless: bool) -> Process:
    line = _ancestors(os.getpid())
    for key in (signs.process for signs in _signs()):
        named = _named_process(env.get(key, ""), line)
        if named is not None:
            return named
    # Whatever a hook of git runs ends with the git command.
    above_git = max((at + 1 for at, ancestor in enumerate(line) if ancestor.name == "git"), default=0)
    lasting = (ancestor for ancestor in line[above_git:] if ancestor.name.lstrip("-") not in _TRANSIENT)
    nearest = next(lasting, None)
    if not line or (nearest is None and not nameless and process.in_own_namespace()):
        return _NOBODY
    # Only shells up to the top: a container whose first process is one.
    return nearest or line[-1]


def _named_process(text: str, line: Sequence[Process]) -> Process | None:
    """Return the process that a variable names, if it is an ancestor or may be signalled; else None."""
    if not (text.isascii() and text.isdigit()):
        return None
    pid = int(text)
    for ancestor in line:
        if ancestor.pid == pid:
            return ancestor
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return None
    return process.find(pid) if pid > 0 else None


def _signs() -> Iterable[Signs]:
    from harness_lib.agents import registry  # noqa: PLC0415 (a hook that asks nothing of it starts sooner)

    return registry.SIGNS.values()


@lru_cache(maxsize=1)
def _ancestors(_pid: int) -> tuple[Process, ...]:
    """Return the ancestors of this process, nearest first, as they were at its first call."""
    return tuple(process.ancestors())


def _token(owner: Process) -> str:
    return sha256.digest(f"{process.boot_id()} {owner.started}".encode())[:8]


def _clean(text: str) -> str:
    return "".join(char for char in text if char.isprintable()).strip()[:MAX_NAME]


# A session of another machine cannot be probed; after this long without an end it counts as gone.
FOREIGN_SECONDS = 24 * 3600.0
# Nor can one in a sandbox; but each of its commands, and each hook of its agent, leaves a note.
SANDBOX_SECONDS = 30 * 60.0


class Record(NamedTuple):
    """The agent of a session as recorded.

    `started` is in seconds since the epoch by the clock of this machine, 0 if unknown.
    """

    host: str
    boot_id: str
    pid: int
    pid_started: str
    agent_session_id: str
    started: float

    @classmethod
    def of(cls, session: Mapping[str, Any], ahead: float = 0.0) -> Record:
        """Return what `session`, a session of the list, says of its agent.

        `ahead`: how many seconds the clock that has dated it is ahead of this machine's.
        """
        from harness_lib import timestamps  # noqa: PLC0415 (a hook seldom asks for it)

        began = session.get("started_at")
        return cls(
            host=str(session.get("host") or ""),
            boot_id=str(session.get("boot_id") or ""),
            pid=int(session.get("pid") or 0),
            pid_started=str(session.get("pid_started") or ""),
            agent_session_id=str(session.get("agent_session_id") or ""),
            started=timestamps.parse(began).timestamp() - ahead if began else 0.0,
        )


def has_ended(root: str, record: Record, caller: str) -> bool:
    """Return whether a hook has noted that the agent session is over, though its process may still live.

    A note from before the session began is of an earlier one; the session of `caller` has not ended.
    """
    if not record.agent_session_id or record.agent_session_id == caller:
        return False
    noted = own_files.written(own_files.note_path(root, "ended", record.agent_session_id))
    return noted is not None and noted >= record.started


def may_live(root: str, record: Record, caller: str, now: float) -> bool:
    """Return whether the agent of `record` may still live, as seen by the agent session `caller`."""
    if has_ended(root, record, caller):
        return False
    found = life(*record[:4])
    if found != "unknown":
        return found == "alive"
    if _is_sandboxed(record):
        notes = (own_files.note_path(root, kind, record.agent_session_id) for kind in ("seen", "beats"))
        signs = (own_files.written(note) for note in notes)
        return now - max([record.started, *(sign for sign in signs if sign is not None)]) < SANDBOX_SECONDS
    return not record.started or now - record.started < FOREIGN_SECONDS


def _is_sandboxed(record: Record) -> bool:
    """Return whether the session belongs to a sandbox of this machine: its processes are invisible here."""
    if not record.agent_session_id or record.host != os.uname().nodename:
        return False
    boot, _, namespace = record.boot_id.partition("/")
    our_boot, _, ours = process.boot_id().partition("/")
    return not record.pid or (bool(boot) and boot == our_boot and namespace != ours)


def show_alive(root: str, agent_session_id: str) -> None:
    """Note that the agent session is alive; a failure is ignored, as any note may be lost."""
    with suppress(OSError):
        own_files.write_note(own_files.note_path(root, "seen", agent_session_id), b"")

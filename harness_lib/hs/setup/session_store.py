"""The store of sessions: where new ones are made and old ones found."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from harness_lib.errors import EnvSetupError
from harness_lib.hs.setup import own_sessions
from harness_lib.loop import conf
from harness_lib.loop.names import is_name
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session, now
from harness_lib.system.files import atomic


def directory(runtime: Runtime) -> Path:
    """Return the store; it need not exist."""
    return Path(runtime.env["HARNESS_SESSIONS"])


def find(runtime: Runtime, name: str) -> Session | None:
    """Return the session `name`; None if there is none of that name."""
    path = directory(runtime) / name
    # A task stands where a name could: what is too long for one is none, where `Path` raises an error.
    return Session(path) if is_name(name) and os.path.isdir(path) else None  # noqa: PTH112


def every(runtime: Runtime) -> list[Session]:
    """Return this person's sessions that no subagent made, the one that changed last first."""
    return [session for session in _all(runtime) if "parent" not in session.conf]


def subagents(runtime: Runtime, parent: str) -> list[Session]:
    """Return the sessions that subagents of the session `parent` made."""
    return [session for session in _all(runtime) if session.conf.get("parent") == parent]


def _all(runtime: Runtime) -> list[Session]:
    store = directory(runtime)
    paths = [path for path in store.iterdir() if path.is_dir()] if store.is_dir() else []
    sessions = [Session(path) for path in sorted(paths, key=_age)]
    own = [session for session in sessions if own_sessions.is_own(runtime, session)]
    if len(own) < len(sessions) and not runtime.kept.get("told of foreign sessions"):
        runtime.kept["told of foreign sessions"] = True
        runtime.notice(
            f"sessions that you have not made here are not listed: {len(sessions) - len(own)} in {store}. "
            "hs session show ID shows one, hs session fork ID makes a copy to go on in."
        )
    return own


def _age(path: Path) -> tuple[int, str]:
    """Return what sorts the session that changed last before others."""
    messages = path / "messages"
    changed = max(directory.stat().st_mtime_ns for directory in (path, messages) if directory.is_dir())
    return -changed, path.name


def create(runtime: Runtime) -> Session:
    """Make a session for the run's provider, model and directory. Raises EnvSetupError if it cannot be."""
    stamp = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}"
    try:
        directory(runtime).mkdir(mode=0o700, parents=True, exist_ok=True)
        path = _new(directory(runtime), stamp)
        (path / "messages").mkdir(mode=0o700)
        values = {
            "id": path.name,
            "model": runtime.model,
            "provider": runtime.provider,
            "created": now(),
            "cwd": str(runtime.cwd),
            **({"parent": parent} if (parent := runtime.env.get("HARNESS_PARENT")) else {}),
        }
        atomic.write(path / "session.conf", conf.render(values).encode(), durable=False, mode=0o600)
        own_sessions.mark(runtime, path)
    except OSError as error:
        message = f"No session can be made in {directory(runtime)}: {error.strerror}."
        raise EnvSetupError(message, "Set HARNESS_SESSIONS to a directory that you can write.") from error
    return Session(path)


def _new(store: Path, stamp: str) -> Path:
    """Make the directory `stamp`; a second one of the same process and second gets another number."""
    for again in range(1000):
        path = store / (f"{stamp}-{again}" if again else stamp)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path
    raise FileExistsError(f"{store / stamp}")

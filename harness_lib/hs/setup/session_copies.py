"""A session copied, told in one piece, or removed."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from harness_lib.errors import RefusedError, UsageError
from harness_lib.hs.setup import own_sessions, session_store
from harness_lib.loop import conf
from harness_lib.loop.piped import Json
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session
from harness_lib.system.files import atomic

_PRIVATE = 0o600
_OURS = (
    *(".lock", ".stream", "mcp.log", "repl.log", "session.conf"),
    *(own_sessions.IGNORE, own_sessions.TOKEN),
)


def fork(runtime: Runtime, source: Session, last: int | None) -> Session:
    """Return a new session that goes on behind the message `last` of `source`, or behind its end.

    Of a session of somebody else only what a person can read is taken. Raises UsageError, RefusedError.
    """
    source.refuse_links()
    kept = [message.seq for message in source.messages() if last is None or message.seq <= last]
    if last is not None and last not in kept:
        raise UsageError(
            f"The session {source.id} has no message {last:04d}.", f"hs session show {source.id}"
        )
    copy = session_store.create(runtime)
    values = {**source.conf, "id": copy.id, "created": copy.conf["created"], "forked": source.id}
    values.pop("parent", None)
    own = own_sessions.is_own(runtime, source)
    if not own or own_sessions.works_outside(runtime, source):
        values["cwd"] = copy.conf["cwd"]
    for path in source.files():
        if int(path.name.partition("-")[0]) in kept:
            _copy(path, copy.directory / "messages" / path.name)
    for seq in kept:
        native = source.directory / "native" / f"{seq:04d}.json"
        if own and native.is_file():
            _copy(native, copy.directory / "native" / native.name)
    atomic.write(copy.directory / "session.conf", conf.render(values).encode(), durable=False, mode=_PRIVATE)
    return Session(copy.directory)


def markdown(session: Session) -> str:
    """Return the whole session as one Markdown text."""
    parts = [f"# Session {session.id}\n"]
    for message in session.messages():
        about = message.fields.get("tool") or message.fields.get("model") or ""
        parts.append(
            f"## {message.seq:04d} {message.role}{f' ({about})' if about else ''}\n\n{message.body}\n"
        )
    return "\n".join(parts)


def as_json(session: Session) -> Json:
    """Return the whole session as one object."""
    messages = [
        {"seq": message.seq, **message.fields, "role": message.role, "body": message.body}
        for message in session.messages()
    ]
    return {"session": session.conf, "messages": messages}


def remove(runtime: Runtime, session: Session) -> list[str]:
    """Delete the session and those of its subagents; return their names. Raises HeldError, RefusedError."""
    every = [session, *_below(runtime, session.id, {session.id})]
    for each in every:
        if each.directory.is_symlink() or not (each.directory / "session.conf").is_file():
            raise RefusedError(
                f"{each.directory} is no session of ours.", "Look at it, and remove it by hand."
            )
        # Whoever works in one of them loses nothing.
        each.hold()
    for each in every:
        shutil.rmtree(each.directory)
    return [each.id for each in every]


def remove_unused(session: Session) -> None:
    """Delete the session if nothing was said in it, and nobody has put anything there."""
    with suppress(OSError):
        if {path.name for path in session.directory.iterdir()} - {*_OURS, "messages"}:
            return
        # Fails where there is something in it.
        (session.directory / "messages").rmdir()
        for name in _OURS:
            (session.directory / name).unlink(missing_ok=True)
        session.directory.rmdir()


def _below(runtime: Runtime, parent: str, seen: set[str]) -> list[Session]:
    """Return the sessions of the subagents of `parent`, and of theirs."""
    sessions: list[Session] = []
    for each in session_store.subagents(runtime, parent):
        if each.id not in seen:
            seen.add(each.id)
            sessions += [each, *_below(runtime, each.id, seen)]
    return sessions


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(_PRIVATE)

"""The sessions of the user: make and find them; `hs session` shows, copies, exports and removes them.

All in their home are theirs, and those of a project that their home has a note of: the others may have come
with it, and say what nobody has said. A note is a token that the session has and that home, where no clone
can write, knows.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from harness_lib.errors import EnvSetupError, RefusedError, UsageError
from harness_lib.hs.terminal import show
from harness_lib.loop import context, disk, piped, trust
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.session import Session
from harness_lib.system.place import own_files

USAGE = "hs session list | show ID | dir [ID] | fork ID [NNNN] | export ID [--json] | rm ID"
IGNORE = ".gitignore"
NOTES, TOKEN = ".own-sessions", ".own"
_OURS = (
    *(".lock", ".stream", "mcp.log", "repl.log", "session.conf"),
    *(IGNORE, TOKEN),
)


def find(runtime: Runtime, name: str) -> Session | None:
    """Return the session `name`; None if it does not exist."""
    path = runtime.sessions / name
    # `name` may be a task; `Path` raises an error for one that is too long.
    return Session(path) if disk.is_name(name) and os.path.isdir(path) else None  # noqa: PTH112


def known(runtime: Runtime, name: str) -> Session:
    """Return the session `name`. Raises UsageError."""
    session = find(runtime, name)
    if session is None:
        problem = f"There is no session {name}." if name else "The name of the session is empty."
        raise UsageError(problem, "hs session list shows those that there are.")
    return session


def to_go_on(runtime: Runtime, name: str) -> Session:
    """Return the user's session `name`. Raises UsageError, and RefusedError if it must not go on here.

    Where its directory is gone, its tools would work in another project; a session of a project goes on where
    the project has been moved to.
    """
    session = known(runtime, name)
    check_own(runtime, session)
    if _is_gone(session) and not project_of(runtime, session.directory.parent):
        raise RefusedError(
            f"The session {session.id} works in {session.conf['cwd']}, which is not there any more.",
            f"To go on in a copy that works here: hs session fork {session.id}",
        )
    return session


def newest_here(runtime: Runtime) -> Session:
    """Return the newest session of this directory with a message in it. Raises UsageError.

    One of a project that has been moved is of the directory in which it would go on.
    """
    cwd, moves = str(runtime.cwd), project_of(runtime, runtime.sessions) is not None
    of_here = (each for each in every(runtime) if str(each.cwd if moves else each.conf.get("cwd")) == cwd)
    newest = next((each for each in of_here if each.files()), None)
    if newest is None:
        raise UsageError("There is no session of this directory yet.", "Begin one: leave out --continue.")
    return newest


def every(runtime: Runtime) -> list[Session]:
    """Return this user's sessions that no subagent made, the one that changed last first."""
    return [session for session in _all(runtime) if "parent" not in session.conf]


def _all(runtime: Runtime) -> list[Session]:
    store = runtime.sessions
    paths = [path for path in store.iterdir() if path.is_dir()] if store.is_dir() else []
    sessions = [Session(path) for path in sorted(paths, key=_age)]
    own = [session for session in sessions if is_own(runtime, session)]
    if len(own) < len(sessions):
        runtime.notice_once(
            f"sessions that you have not made here are not listed: {len(sessions) - len(own)} in {store}. "
            "hs session show ID shows one, hs session fork ID makes a copy to go on in."
        )
    return own


def _age(path: Path) -> tuple[int, str]:
    """Return a key that sorts the session that changed last first."""
    messages = path / "messages"
    changed = max(directory.stat().st_mtime_ns for directory in (path, messages) if directory.is_dir())
    return -changed, path.name


def create(runtime: Runtime) -> Session:
    """Make a session for the run's provider, model and directory. Raises EnvSetupError if it cannot be."""
    began = datetime.now().astimezone()
    stamp = f"{began:%Y%m%d-%H%M%S}-{os.getpid()}"
    cwd = str(runtime.cwd)
    try:
        # Neither a session nor a model could name another one.
        cwd.encode()
    except UnicodeEncodeError as error:
        raise EnvSetupError(f"The path of this directory is not UTF-8: {cwd!a}.", "Rename it.") from error
    try:
        # Above it, too: harness runs no code from a directory that a group may write.
        for directory in (runtime.home, runtime.sessions):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = runtime.sessions / stamp
        for again in count(1):
            # A second one of the same process and second gets another number.
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                break
            path = runtime.sessions / f"{stamp}-{again}"
        (path / "messages").mkdir(mode=0o700)
        values = {
            "id": path.name,
            "model": runtime.model,
            "provider": runtime.provider,
            "created": began.isoformat(timespec="seconds"),
            "cwd": cwd,
            **({"parent": parent} if (parent := runtime.env.get("HARNESS_PARENT")) else {}),
        }
        disk.write(path / "session.conf", disk.render_conf(values).encode())
        mark(runtime, path)
    except OSError as error:
        message = f"No session can be made in {runtime.sessions}: {error.strerror}."
        raise EnvSetupError(message, "Set HARNESS_SESSIONS to a directory that you can write.") from error
    return Session(path)


def mark(runtime: Runtime, directory: Path) -> None:
    """Note that this user has made the session `directory`, and keep it out of git. Raises OSError."""
    if not project_of(runtime, directory.parent):
        return
    token = os.urandom(16).hex()
    disk.write(directory / IGNORE, b"*\n")
    disk.write(directory / TOKEN, token.encode())
    try:
        runtime.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with disk.appending(runtime.home / NOTES) as notes:
            notes.write(f"{token} {directory.name}\n".encode())
    except OSError as error:
        runtime.notice(
            f"{runtime.home / NOTES} cannot be written ({error.strerror}): "
            f"the session {directory.name} cannot be resumed."
        )


def is_own(runtime: Runtime, session: Session) -> bool:
    """Return whether this user has made `session`."""
    if not project_of(runtime, session.directory.parent):
        return True
    try:
        token = own_files.read(os.fspath(session.directory / TOKEN), 100).decode("ascii", "replace")
        notes = (runtime.home / NOTES).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    return f"{token} {session.id}" in notes


def check_own(runtime: Runtime, session: Session) -> None:
    """Raise RefusedError for a session of another user, or one that works outside of its project."""
    if not is_own(runtime, session):
        raise RefusedError(
            f"The session {session.id} is not one that you have made here.",
            f"Look at it: hs session show {session.id}. "
            f"To go on in a copy of it: hs session fork {session.id}",
        )
    if _works_outside(runtime, session):
        raise RefusedError(
            f"The session {session.id} works in {session.cwd}, which is outside of its project.",
            f"To go on in a copy that works here: hs session fork {session.id}",
        )


def _is_gone(session: Session) -> bool:
    return not os.path.isdir(session.conf.get("cwd") or ".")  # noqa: PTH112 (as in `find`)


def _works_outside(runtime: Runtime, session: Session) -> bool:
    """Return whether `session` is in a project and its directory is not."""
    root = project_of(runtime, session.directory.parent)
    return root is not None and not session.cwd.resolve().is_relative_to(root.resolve())


def project_of(runtime: Runtime, store: Path) -> Path | None:
    """Return the project that the sessions in `store` belong to; None where they are the user's own."""
    real = Path(os.path.realpath(store))
    if real.is_relative_to(os.path.realpath(runtime.home)):
        return None
    if project := trust.project_of_source(runtime, str(store)):
        return project
    root = trust.project_root(runtime, runtime.cwd)
    return root if real.is_relative_to(root.resolve()) else None


def session(runtime: Runtime, args: list[str]) -> int:
    """Look at sessions, copy and remove them."""
    match args:
        case [] | ["list"]:
            for each in every(runtime):
                # Programs want the names; the user knows a session by its title.
                show(f"{each.id}  {each.title}".rstrip() if sys.stdout.isatty() else each.id)
        case ["show", name]:
            _show(known(runtime, name))
        case ["fork", name, *last] if not last or (len(last) == 1 and disk.number(last[0])):
            number = disk.number(last[0]) if last else None
            show(fork(runtime, known(runtime, name), number).id)
        case ["export", "--json", name] | ["export", name, "--json"]:
            show(piped.dumps(_as_json(known(runtime, name))))
        case ["export", name]:
            show(_markdown(known(runtime, name)), end="")
        case ["rm", name]:
            for removed in _remove(runtime, known(runtime, name)):
                show(f"removed: {removed}")
        case ["dir", *name] if len(name) <= 1:
            show(runtime.sessions.joinpath(*name))
        case _:
            raise _misused(args)
    return 0


def _misused(args: list[str]) -> UsageError:
    if args in (["show"], ["fork"], ["export"], ["rm"]):
        said = f"hs session {args[0]} wants the ID of a session."
        return UsageError(said, "hs session list shows those that there are.")
    return UsageError(f"hs session does not understand: {' '.join(args)}.", f"Usage: {USAGE}")


def _show(session: Session) -> None:
    show(disk.render_conf(session.conf), end="")
    files = session.files()
    account = context.total(session.messages())
    show(f"tokens_in={account.tokens_in}\ntokens_out={account.tokens_out}\ncost={account.shown()}")
    show("\n".join([f"messages={len(files)}", *(path.name for path in files)]))


def fork(runtime: Runtime, source: Session, last: int | None) -> Session:
    """Return a new session that goes on behind the message `last` of `source`, or behind its end.

    Of another user's session only what this user can read is taken. Raises UsageError, RefusedError.
    """
    source.refuse_links()
    kept = [message.seq for message in source.messages() if last is None or message.seq <= last]
    if last is not None and last not in kept:
        raise UsageError(
            f"The session {source.id} has no message {last:04d}.", f"hs session show {source.id}"
        )
    copy = create(runtime)
    values = {**source.conf, "id": copy.id, "created": copy.conf["created"], "forked": source.id}
    values.pop("parent", None)
    own = is_own(runtime, source)
    if not own or _is_gone(source) or _works_outside(runtime, source):
        values["cwd"] = copy.conf["cwd"]
    for path in source.files():
        if int(path.name.partition("-")[0]) in kept:
            copy.write(f"messages/{path.name}", path.read_bytes())
    for seq in kept:
        native = source.directory / "native" / f"{seq:04d}.json"
        if own and native.is_file():
            copy.write(f"native/{native.name}", native.read_bytes())
    copy.write("session.conf", disk.render_conf(values).encode())
    return Session(copy.directory)


def _markdown(session: Session) -> str:
    """Return the whole session as one Markdown text."""
    parts = [f"# Session {session.id}\n"]
    for message in session.messages():
        about = message.fields.get("tool") or message.fields.get("model") or ""
        parts.append(
            f"## {message.seq:04d} {message.role}{f' ({about})' if about else ''}\n\n{message.body}\n"
        )
    return "\n".join(parts)


def _as_json(session: Session) -> piped.Json:
    """Return the whole session as one object."""
    messages = [
        {"seq": message.seq, **message.fields, "role": message.role, "body": message.body}
        for message in session.messages()
    ]
    return {"session": session.conf, "messages": messages}


def _remove(runtime: Runtime, session: Session) -> list[str]:
    """Delete the session and those of its subagents; return their names. Raises HeldError, RefusedError."""
    own, every = _all(runtime), [session]
    # It grows while it is read: subagents have subagents.
    for each in every:
        below = (other for other in own if other.conf.get("parent") == each.id)
        every += [other for other in below if other.id not in {known.id for known in every}]
    for each in every:
        if each.directory.is_symlink() or not (each.directory / "session.conf").is_file():
            raise RefusedError(
                f"{each.directory} is not a session of hs.", "Look at it, and remove it by hand."
            )
        # A process that works in one of them loses nothing.
        each.hold()
    for each in every:
        shutil.rmtree(each.directory)
    return [each.id for each in every]


def remove_unused(session: Session) -> None:
    """Delete the session if it has no messages and no files of others."""
    with suppress(OSError):
        if {path.name for path in session.directory.iterdir()} - {*_OURS, "messages"}:
            return
        # Fails where there is something in it.
        (session.directory / "messages").rmdir()
        for name in _OURS:
            (session.directory / name).unlink(missing_ok=True)
        session.directory.rmdir()

"""Which sessions a person has made: all in their home, and those of a project that their home has a note of.

The sessions of a project may have come with it, and say what nobody has said: a note is a token that the
session has and that home, where no clone can write, knows.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from harness_lib.errors import RefusedError
from harness_lib.loop import logs, project, trust
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session
from harness_lib.system.files import atomic, nofollow

NOTES, TOKEN = ".own-sessions", ".own"
IGNORE = ".gitignore"
_TOKEN_BYTES = 16
_LONGEST = 100


def mark(runtime: Runtime, directory: Path) -> None:
    """Note that this person has made the session `directory`, and keep it out of git. Raises OSError."""
    if project_of(runtime, directory.parent) is None:
        return
    token = secrets.token_hex(_TOKEN_BYTES)
    atomic.write(directory / IGNORE, b"*\n", durable=False, mode=0o600)
    atomic.write(directory / TOKEN, token.encode(), durable=False, mode=0o600)
    try:
        runtime.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with logs.appending(runtime.home / NOTES) as notes:
            notes.write(f"{token} {directory.name}\n".encode())
    except OSError as error:
        runtime.notice(
            f"{runtime.home / NOTES} cannot be written ({error.strerror}): "
            f"the session {directory.name} cannot be resumed."
        )


def is_own(runtime: Runtime, session: Session) -> bool:
    """Return whether this person has made `session`."""
    if session.directory.is_symlink():
        return False
    if project_of(runtime, session.directory.parent) is None:
        return True
    try:
        token = nofollow.read(os.fspath(session.directory / TOKEN), _LONGEST).decode("ascii", "replace")
        notes = (runtime.home / NOTES).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    return f"{token} {session.id}" in notes


def check(runtime: Runtime, session: Session) -> None:
    """Raise RefusedError for a session of somebody else, or one that works outside of its project."""
    if not is_own(runtime, session):
        raise RefusedError(
            f"The session {session.id} is not one that you have made here.",
            f"Look at it: hs session show {session.id}. "
            f"To go on in a copy of it: hs session fork {session.id}",
        )
    if works_outside(runtime, session):
        raise RefusedError(
            f"The session {session.id} works in {session.cwd}, which is outside of its project.",
            f"To go on in a copy that works here: hs session fork {session.id}",
        )


def works_outside(runtime: Runtime, session: Session) -> bool:
    """Return whether `session` is in a project and its directory is not."""
    root = project_of(runtime, session.directory.parent)
    return root is not None and not session.cwd.resolve().is_relative_to(root.resolve())


def project_of(runtime: Runtime, store: Path) -> Path | None:
    """Return the project that the sessions in `store` belong to; None where they are the person's own."""
    real = Path(os.path.realpath(store))
    if real.is_relative_to(os.path.realpath(runtime.home)):
        return None
    if trust.is_projects(runtime, str(store)):
        return next(each for each in (store, *store.parents) if each.name == ".harness").parent
    root = project.root(runtime, runtime.cwd)
    return root if real.is_relative_to(root.resolve()) else None

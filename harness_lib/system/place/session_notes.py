"""Read and write small notes in `.harness/`, each about one agent session; they may be lost at any time.

In plain strings, for hooks (see find_root.py).
A note is named by a hash of the session id, because ids come from hosts and could be anything, even a path.
Source: docs/design.md, "The Stop hook".
"""

from __future__ import annotations

import os

try:
    # As from hashlib, without loading OpenSSL.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from harness_lib.system import nofollow
from harness_lib.system.place.find_root import PRIVATE_DIR

TYPE_CHECKING = False  # see find_root.py
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["stops", "beats", "ended", "seen"]

KINDS: tuple[Kind, ...] = ("stops", "beats", "ended", "seen")
_LIMIT = 64 * 1024
_PRIVATE = 0o700
# As in `fs`: an agent may remove the directory between its making and the write.
_TRIES = 20


def path(root: str, kind: Kind, session_id: str) -> str:
    """Return the path of the note of `kind` about `session_id`."""
    name = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return os.path.join(root, PRIVATE_DIR, kind, name)


def keep_bug(root: str, report: str) -> str | None:
    """Write the `report` of a bug in harness to a file of this process; return its path, None on failure.

    For the outermost error handlers, so with as few dependencies as possible.
    """
    file = os.path.join(root, PRIVATE_DIR, f"bug-{os.getpid()}.txt")
    try:
        write(file, report.encode("utf-8", "backslashreplace"))
    except OSError:
        return None
    return file


def read(note: str) -> bytes:
    """Return the content of `note`; b"" if it is missing."""
    try:
        return nofollow.read(note, _LIMIT)
    except OSError:
        # Also an unreadable one: it counts as lost.
        return b""


def write(note: str, data: bytes) -> None:
    """Replace `note`, in one step and without waiting for the disk. Raises OSError."""
    for _ in range(_TRIES - 1):
        try:
            return _write(note, data)
        except (FileNotFoundError, FileExistsError):
            # makedirs() raises FileExistsError also if the directory is removed meanwhile.
            continue
    return _write(note, data)


def _write(note: str, data: bytes) -> None:
    directory, name = os.path.split(note)
    private = directory if os.path.basename(directory) == PRIVATE_DIR else os.path.dirname(directory)
    if not os.path.isdir(private):
        os.makedirs(private, _PRIVATE, exist_ok=True)
        ignore = nofollow.ignore_file(private)
        if ignore is not None:
            with os.fdopen(nofollow.descriptor(ignore, os.O_WRONLY | os.O_CREAT), "wb") as stream:
                stream.write(nofollow.RULES)
    os.makedirs(directory, _PRIVATE, exist_ok=True)
    # Named as by `fs`, so that a leftover is swept in the same way.
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.tmp")
    with os.fdopen(nofollow.descriptor(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        stream.write(data)
    os.replace(temporary, note)


def written(note: str) -> float | None:
    """Return when `note` was written, in seconds since the epoch; None if it is missing."""
    try:
        return os.lstat(note).st_mtime
    except OSError:
        return None


def remove(note: str) -> None:
    """Remove `note` if it exists."""
    try:
        os.unlink(note)
    except FileNotFoundError:
        return


def sweep(root: str, before: float) -> None:
    """Remove the notes that were written `before` that second since the epoch. Raises OSError.

    A session that has crashed, or whose host sends no event at its end, removes none of its own.
    """
    for kind in KINDS:
        directory = os.path.join(root, PRIVATE_DIR, kind)
        try:
            names = os.listdir(directory)
        except FileNotFoundError:
            continue
        for name in names:
            note = os.path.join(directory, name)
            last = written(note)
            if last is not None and last < before:
                remove(note)

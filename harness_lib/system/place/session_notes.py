"""Small notes in `.harness/` about one agent session each; all of them may be lost at any time.

In plain strings, for hooks (see find_root.py).
A note is called by a hash of the session's id, because ids come from hosts and could be anything, a path too.
Source: docs/design.md, "The Stop hook".
"""

from __future__ import annotations

import os

try:
    # What hashlib hands out, without loading the whole of OpenSSL first.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from harness_lib.system.files import nofollow
from harness_lib.system.place.find_root import PRIVATE_DIR

TYPE_CHECKING = False  # see find_root.py
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["stops", "beats", "ended", "seen"]

KINDS: tuple[Kind, ...] = ("stops", "beats", "ended", "seen")
_LIMIT = 64 * 1024
_PRIVATE = 0o700
# As in `atomic`: an agent may take the directory away between our making it and our writing there.
_TRIES = 20


def path(root: str, kind: Kind, session_id: str) -> str:
    """Return where the note of `kind` about `session_id` lies."""
    name = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return os.path.join(root, PRIVATE_DIR, kind, name)


def keep_bug(root: str, report: str) -> str | None:
    """Write the `report` of a bug of ours to a file of this process; return its path, None if that cannot be.

    For the outermost counters: whatever else is broken, they still have to say what they were asked.
    """
    file = os.path.join(root, PRIVATE_DIR, f"bug-{os.getpid()}.txt")
    try:
        write(file, report.encode("utf-8", "backslashreplace"))
    except OSError:
        return None
    return file


def read(note: str) -> bytes:
    """Return what stands in `note`; b"" if it is not there."""
    try:
        return nofollow.read(note, _LIMIT)
    except OSError:
        # Not only a missing one: what cannot be read is as good as lost.
        return b""


def write(note: str, data: bytes) -> None:
    """Replace `note`, in one step and without waiting for the disk. Raises OSError."""
    for _ in range(_TRIES - 1):
        try:
            return _write(note, data)
        except (FileNotFoundError, FileExistsError):
            # makedirs() says that it exists of a directory, too, which is gone when it looks.
            continue
    return _write(note, data)


def _write(note: str, data: bytes) -> None:
    directory, name = os.path.split(note)
    _make_directory(directory)
    # Called as `atomic` calls its own, so that one that is left behind is swept like them.
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.tmp")
    with os.fdopen(nofollow.descriptor(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        stream.write(data)
    os.replace(temporary, note)


def written(note: str) -> float | None:
    """Return when `note` was written, in seconds since the epoch; None if it is not there."""
    try:
        return os.lstat(note).st_mtime
    except OSError:
        return None


def remove(note: str) -> None:
    """Remove `note`; one that is not there is fine."""
    try:
        os.unlink(note)
    except FileNotFoundError:
        return


def sweep(root: str, before: float) -> None:
    """Remove the notes that were written `before` that second since the epoch. Raises OSError.

    A session that has crashed, or whose host tells no end, takes none of its own away.
    """
    for kind in KINDS:
        directory = os.path.join(root, PRIVATE_DIR, kind)
        for name in _names(directory):
            note = os.path.join(directory, name)
            last = written(note)
            if last is not None and last < before:
                remove(note)


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _make_directory(directory: str) -> None:
    private = directory if os.path.basename(directory) == PRIVATE_DIR else os.path.dirname(directory)
    if not os.path.isdir(private):
        os.makedirs(private, _PRIVATE, exist_ok=True)
        ignore = nofollow.ignore_file(private)
        if ignore is not None:
            with os.fdopen(nofollow.descriptor(ignore, os.O_WRONLY | os.O_CREAT), "wb") as stream:
                stream.write(nofollow.RULES)
    os.makedirs(directory, _PRIVATE, exist_ok=True)

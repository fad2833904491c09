"""Open the files of harness without following symbolic links, and keep small notes about agent sessions.

A clone can bring any of these files as a link to another file of the user, and a line for the log would be
appended there. `find_root.linked` finds such links before anything is opened; this is the second guard. The
notes are in `.harness/` and may be lost at any time. Each is named by a hash of the session id, because ids
come from hosts and could be anything, even a path. Source: docs/design.md, "The Stop hook".
In plain strings and the standard library, for hooks.
"""

from __future__ import annotations

import errno
import os

try:
    # As from hashlib, without loading OpenSSL.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from harness_lib.system.place.find_root import PRIVATE_DIR

TYPE_CHECKING = False  # see find_root.py

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO, Literal

    Kind = Literal["stops", "beats", "ended", "seen"]


# O_NONBLOCK: opening a FIFO must not wait for its other end.
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def descriptor(path: str | Path, flags: int) -> int:
    """Open `path` as `os.open` does. Raises OSError, also if it or its directory is a symbolic link."""
    directory = os.path.dirname(path)
    if os.path.islink(directory):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), directory)
    return os.open(path, flags | _FLAGS, 0o600)


def reading(path: str | Path) -> BinaryIO:
    """Return `path`, opened for reading. Raises OSError as `descriptor` does."""
    return os.fdopen(descriptor(path, os.O_RDONLY), "rb")


def read(path: str | Path, limit: int = -1) -> bytes:
    """Return the content of `path`, at most `limit` bytes of it. Raises OSError as `descriptor` does."""
    with os.fdopen(descriptor(path, os.O_RDONLY), "rb") as stream:
        # None: a pipe without anything in it.
        return stream.read(limit) or b""


def tail(path: str | Path, size: int) -> bytes:
    """Return the last `size` bytes of the file at `path`. Raises OSError as `descriptor` does."""
    with reading(path) as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - size))
        return stream.read(size)


# What of `.harness/` is private, as patterns of git's ignore files; the rest may be plugins for hs, which a
# project can commit. Temporary files and credentials begin with a dot.
PATTERNS = (
    ".*",
    "*.lock",
    "*.turn",
    "beats/",
    "board-*.json",
    "budget*.json",
    "bug-*.txt",
    "ended/",
    "final.json",
    "foreign.json",
    "gates/",
    "generations/",
    "held/",
    "history",
    "logs/",
    "mail/",
    "mcp/",
    "runs/",
    "seen/",
    "sessions/",
    "stops/",
    "store*.json",
    "summary.json",
    "trusted.json",
)
_HEAD = "# What harness keeps to itself; plugins beside it can be committed."
RULES = "".join(f"{line}\n" for line in (_HEAD, *(f"/{pattern}" for pattern in PATTERNS))).encode()
# The rules that came after 0.1.0; before it nothing in the directory could be committed.
_LATER = {b"/held/", b"/runs/", b"/store*.json"}
_FIRST = b"*\n"
_FILE = ".gitignore"


def is_at(path: str | os.PathLike[str], info: os.stat_result) -> bool:
    """Return whether the file of `info` is at `path`, by that name and not through a link."""
    try:
        return os.path.samestat(os.lstat(path), info)
    except (FileNotFoundError, NotADirectoryError):
        return False


def ignore_file(private: str) -> str | None:
    """Return the path of the ignore rules in `private` if they must be written; None to keep those there."""
    path = os.path.join(private, _FILE)
    try:
        content = read(path, len(RULES) + 1)
    except FileNotFoundError:
        return path
    except OSError:
        # A link, or unreadable: not a file of harness.
        return None
    lacking = set(RULES.splitlines()).symmetric_difference(content.splitlines())
    return path if content == _FIRST or (lacking and lacking <= _LATER) else None


KINDS: tuple[Kind, ...] = ("stops", "beats", "ended", "seen")
_LIMIT = 64 * 1024
_PRIVATE = 0o700
# As in `fs`: an agent may remove the directory between its making and the write.
_TRIES = 20


def note_path(root: str, kind: Kind, session_id: str) -> str:
    """Return the path of the note of `kind` about `session_id`."""
    name = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return os.path.join(root, PRIVATE_DIR, kind, name)


def keep_bug(root: str, report: str) -> str | None:
    """Write the `report` of a bug in harness to a file of this process; return its path, None on failure.

    For the outermost error handlers, so with as few dependencies as possible.
    """
    file = os.path.join(root, PRIVATE_DIR, f"bug-{os.getpid()}.txt")
    try:
        write_note(file, report.encode("utf-8", "backslashreplace"))
    except OSError:
        return None
    return file


def read_note(note: str) -> bytes:
    """Return the content of `note`; b"" if it is missing."""
    try:
        return read(note, _LIMIT)
    except OSError:
        # Also an unreadable one: it counts as lost.
        return b""


def write_note(note: str, data: bytes) -> None:
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
        ignore = ignore_file(private)
        if ignore is not None:
            with os.fdopen(descriptor(ignore, os.O_WRONLY | os.O_CREAT), "wb") as stream:
                stream.write(RULES)
    os.makedirs(directory, _PRIVATE, exist_ok=True)
    # Named as by `fs`, so that a leftover is swept in the same way.
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.tmp")
    with os.fdopen(descriptor(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
        stream.write(data)
    os.replace(temporary, note)


def written(note: str) -> float | None:
    """Return when `note` was written, in seconds since the epoch; None if it is missing."""
    try:
        return os.lstat(note).st_mtime
    except OSError:
        return None


def remove_note(note: str) -> None:
    """Remove `note` if it exists."""
    try:
        os.unlink(note)
    except FileNotFoundError:
        return


def sweep_notes(root: str, before: float) -> None:
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
                remove_note(note)

"""Open the files of harness without following symbolic links, and name those that are private.

A clone can bring any of these files as a link to another file of the user, and a line for the log would be
appended there. `find_root.linked` finds such links before anything is opened; this is the second guard.
In plain strings and the standard library, for hooks.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # see find_root.py

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO


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
    with reading(path) as stream:
        return stream.read(limit)


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

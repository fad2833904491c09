"""Bring a log to its end, once nobody writes into it any more: cut to both ends, and in its place.

What went wrong first stands at the beginning and what it came to at the end; a gigabyte between the two only
fills the disk. An agent may have removed the file, which whoever wrote into it has not noticed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from harness_lib.system.files import atomic

END_BYTES = 4 * 1024 * 1024


def finish(log: Path, descriptor: int) -> None:
    """Keep the first and the last END_BYTES of `log`, which `descriptor` reads; write it again if it is gone.

    What stands in its place by now, a link perhaps, is no log of ours.
    """
    # On a disk that is full it stays as it is: it is old one day.
    with suppress(OSError):
        size = os.fstat(descriptor).st_size
        if size > 2 * END_BYTES or not _is_at(log, descriptor):
            atomic.write(log, _both_ends(descriptor, size), durable=False, make=True)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _both_ends(descriptor: int, size: int) -> bytes:
    left_out = size - 2 * END_BYTES
    if left_out <= 0:
        return _read(descriptor, 0, size)
    first, last = _read(descriptor, 0, END_BYTES), _read(descriptor, size - END_BYTES, END_BYTES)
    return b"%b\n[harness left out %d bytes here]\n%b" % (first, left_out, last)


def _read(descriptor: int, at: int, length: int) -> bytes:
    """Return so many bytes from there on; one call may return fewer."""
    parts = []
    while length and (part := os.pread(descriptor, length, at)):
        parts.append(part)
        at, length = at + len(part), length - len(part)
    return b"".join(parts)

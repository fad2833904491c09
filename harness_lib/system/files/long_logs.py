"""Cut a log that nobody will read to its end to both ends, and say between them what was there.

What went wrong first stands at the beginning and what it came to at the end; a gigabyte between the two only
fills the disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from harness_lib.system.files import atomic, nofollow

END_BYTES = 4 * 1024 * 1024


def cut(log: Path) -> None:
    """Keep the first and the last END_BYTES of `log`, once nobody writes into it any more."""
    # On a disk that is full, or where it is gone, it stays as it is: it is old one day.
    with suppress(OSError):
        kept = _both_ends(log)
        if kept is not None:
            atomic.write(log, kept, durable=False)


def _both_ends(log: Path) -> bytes | None:
    """Return what is to be kept of `log`; None if that is all of it."""
    with nofollow.reading(log) as stream:
        size = os.fstat(stream.fileno()).st_size
        left_out = size - 2 * END_BYTES
        if left_out <= 0:
            return None
        first = stream.read(END_BYTES)
        stream.seek(size - END_BYTES)
        return b"%b\n[harness left out %d bytes here]\n%b" % (first, left_out, stream.read(END_BYTES))

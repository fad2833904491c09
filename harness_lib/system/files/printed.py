"""Read the log of a command as plain text, and bound its size."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from harness_lib.system import fs
from harness_lib.system.files import nofollow
from harness_lib.text import harmless

TAIL_LINES = 20
TAIL_CHARS = 2000
TAIL_BYTES = 64 * 1024
# Compilers print what matters at the beginning, test runners at the end.
END_BYTES = 256 * 1024
# Colours, cursor movements and titles; the rest of a broken one goes with the control characters.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
KEPT_BYTES = 4 * 1024 * 1024


def tail_of(log: Path) -> str:
    """Return the end of `log` (TAIL_LINES, TAIL_CHARS) as plain text; "" if it is missing."""
    lines = plain(_read(log, 0, TAIL_BYTES).rstrip())
    return "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARS:].strip("\n")


def ends_of(log: Path) -> list[str]:
    """Return the lines of `log`, or of both its ends if it is larger; [] if it is missing."""
    return plain(_read(log, END_BYTES, END_BYTES).rstrip())


def plain(raw: bytes) -> list[str]:
    """Return the lines of `raw` as a terminal would show them finally."""
    lines = _ESCAPES.sub("", raw.decode("utf-8", "replace")).split("\n")
    # Of a line only the part after the last carriage return is seen.
    shown = (line.rstrip("\r").rpartition("\r")[2].expandtabs(4) for line in lines)
    return [harmless(line, instead="").rstrip() for line in shown]


def _read(log: Path, first: int, last: int) -> bytes:
    try:
        with nofollow.reading(log) as stream:
            head, _, tail = _ends(stream, first, last)
    except FileNotFoundError:
        return b""
    return head + (b"\n" if head and tail else b"") + tail


def _ends(stream: BinaryIO, first: int, last: int) -> tuple[bytes, int, bytes]:
    """Return the `first` bytes of a file, how many are left out, and the `last` bytes of the rest."""
    left_out = os.fstat(stream.fileno()).st_size - first - last
    if left_out <= 0:
        return stream.read(first + last), 0, b""
    head = stream.read(first)
    stream.seek(-last, os.SEEK_END)
    return head, left_out, stream.read(last)


def finish(log: Path, descriptor: int) -> None:
    """Keep the first and the last KEPT_BYTES of `log`, open as `descriptor`; write it again if it is gone.

    Another file in its place, or a link, is replaced.
    """
    # On a full disk it stays as it is, and is removed when it is old.
    with suppress(OSError):
        info = os.fstat(descriptor)
        if info.st_size > 2 * KEPT_BYTES or not nofollow.is_at(log, info):
            with open(descriptor, "rb", closefd=False) as stream:
                stream.seek(0)
                head, left_out, tail = _ends(stream, KEPT_BYTES, KEPT_BYTES)
            gap = b"\n[harness left out %d bytes here]\n" % left_out if left_out else b""
            fs.write(log, head + gap + tail, durable=False, make=True)

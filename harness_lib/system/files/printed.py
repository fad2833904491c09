"""Read what a command has printed into its log as plain text, up to a bound."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness_lib.system.files import nofollow
from harness_lib.text import harmless

TAIL_LINES = 20
TAIL_CHARS = 2000
TAIL_BYTES = 64 * 1024
# What compilers say stands at the beginning, what test runners say at the end.
END_BYTES = 256 * 1024
# Colours, cursor movements and titles; what is left of a broken one goes with the control characters.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def tail_of(log: Path) -> str:
    """Return the end of `log` (TAIL_LINES, TAIL_CHARS) as plain text; "" if it is not there."""
    lines = plain(_read(log, 0, TAIL_BYTES).rstrip())
    return "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARS:].strip("\n")


def ends_of(log: Path) -> list[str]:
    """Return the lines of `log`, of one larger than both ends only these; [] if it is not there."""
    return plain(_read(log, END_BYTES, END_BYTES).rstrip())


def plain(raw: bytes) -> list[str]:
    """Return the lines of `raw` as a terminal would show them in the end."""
    return [_plain(line) for line in _ESCAPES.sub("", raw.decode("utf-8", "replace")).split("\n")]


def _read(log: Path, first: int, last: int) -> bytes:
    try:
        with nofollow.reading(log) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size <= first + last:
                return stream.read(first + last)
            head = stream.read(first)
            stream.seek(size - last)
            return head + (b"\n" if head else b"") + stream.read(last)
    except FileNotFoundError:
        return b""


def _plain(line: str) -> str:
    """Return `line` as a terminal would show it: after the last return to its beginning."""
    shown = line.rstrip("\r").rpartition("\r")[2].expandtabs(4)
    return harmless(shown, instead="").rstrip()

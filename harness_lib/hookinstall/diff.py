"""Show the difference in a host's file without its unchanged lines. Pure."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from harness_lib.text import cut, harmless

ROWS = 200
WIDTH = 400


class _Line(str):
    """A line that equals itself with a comma at its end.

    The line before a new member gets a comma. It is not a change, and must not be shown: it may hold a
    secret.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.rstrip(",") == other.rstrip(",")

    def __hash__(self) -> int:
        return hash(self.rstrip(","))


def lines(path: Path, old: bytes | None, new: bytes | None) -> list[str]:
    """Return the removed and added lines in the form of `diff -u`, without context, limited in number.

    None: there is no file.
    """
    before, after = _lines(old), _lines(new)
    one, two = (str(path) if data is not None else os.devnull for data in (old, new))
    if len(before) == len(after) == 1:
        rows = [f"--- {one}", f"+++ {two}", *_within(before[0], after[0])]
    else:
        rows = list(difflib.unified_diff(before, after, one, two, n=0, lineterm=""))
    shown = [_harmless(row) for row in rows[:ROWS]]
    return [*shown, f"… {len(rows) - ROWS} more lines"] if len(rows) > ROWS else shown


def _lines(data: bytes | None) -> list[_Line]:
    return [_Line(line) for line in (data or b"").decode("utf-8-sig", "replace").splitlines()]


def _within(old: str, new: str) -> list[str]:
    """Return the difference in a file that is one line."""
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    rows = (f"{sign}…{text[start : len(text) - end]}…" for sign, text in (("-", old), ("+", new)))
    return ["@@ -1 +1 @@", *(row for row in rows if len(row) > len("-……"))]


def _alike(old: str, new: str) -> int:
    """Return the length of the common prefix."""
    pairs = zip(old, new, strict=False)
    return next((n for n, (one, two) in enumerate(pairs) if one != two), min(len(old), len(new)))


def _harmless(row: str) -> str:
    return harmless(cut(row, WIDTH), keep="\t")

"""Choose the old files that can go: those of long ago, and the oldest of too many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

SECONDS_PER_DAY = 86_400.0


class Old(NamedTuple):
    """A file: its name, when it was last written (seconds since the epoch), and its size in bytes."""

    name: str
    at: float
    size: int


def outdated(files: Iterable[Old], now: float, days: float, most_bytes: int) -> tuple[Old, ...]:
    """Return what goes, the oldest first: older than `days`, and what is beyond `most_bytes` in all."""
    newest = sorted(files, key=lambda each: each.at, reverse=True)
    gone, kept = [], 0
    for each in newest:
        kept += each.size
        if now - each.at > days * SECONDS_PER_DAY or kept > most_bytes:
            kept -= each.size
            gone.append(each)
    return tuple(gone[::-1])

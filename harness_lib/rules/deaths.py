"""Decide when so many workers have died that no other one would live, and say how one died.

A night is long: a machine that runs out of memory once an hour gets on with its work all the same.
"""

from __future__ import annotations

from typing import NamedTuple

# So many within this time, with no task finished between them, and starting another one is pointless.
MOST = 3
WITHIN_SECONDS = 600.0
KILLED = 9
TOLD_LENGTH = 500


class Deaths(NamedTuple):
    """When workers have died since a task was last finished, in seconds since the epoch."""

    times: tuple[float, ...] = ()

    def another(self, at: float) -> Deaths:
        """Return them with the one of this moment, and without those of long ago."""
        return Deaths((*(time for time in self.times if abs(at - time) < WITHIN_SECONDS), at))

    @property
    def too_many(self) -> bool:
        """Whether another worker would die, too."""
        return len(self.times) > MOST


def describe(code: int, last_words: str) -> str:
    """Return how a process ended, in words: `code` is negative for a signal, as in `subprocess`."""
    how = f"ended with {code}"
    if code < 0:
        how = f"killed by signal {-code}" + (": out of memory?" if -code == KILLED else "")
    return f"{how}; its last words: {last_words[-TOLD_LENGTH:]}" if last_words else how

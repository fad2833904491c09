"""Tell the time; tests pass a subclass."""

from __future__ import annotations

import time
from datetime import datetime, timezone


class Clock:
    """The wall clock for timestamps on disk, the monotonic clock for durations."""

    def now(self) -> datetime:
        """Return this moment as an aware UTC datetime."""
        return datetime.now(timezone.utc)

    def time(self) -> float:
        """Return this moment in seconds since 1970."""
        return self.now().timestamp()

    def monotonic(self) -> float:
        """Return seconds that only grow; comparable inside this process only."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)


SYSTEM = Clock()

"""The only place that knows what time it is; tests hand over a subclass."""

from __future__ import annotations

import time
from datetime import datetime, timezone


class Clock:
    """Wall clock for what stands on disk, monotonic clock for how long something took."""

    def now(self) -> datetime:
        """Return this moment as an aware UTC datetime."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Return seconds that only grow; comparable inside this process alone."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)


SYSTEM = Clock()

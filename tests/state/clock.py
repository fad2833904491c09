"""A clock that stands still, for tests that read what was written with the time in it."""

from __future__ import annotations

from datetime import datetime, timezone

from harness_lib.system.clock import Clock

NOON = "2025-07-01T12:00:00Z"
NOON_IN_NAMES = "20250701T120000Z"


class Noon(Clock):
    """It is noon, for ever."""

    def now(self) -> datetime:
        return datetime(2025, 7, 1, 12, tzinfo=timezone.utc)

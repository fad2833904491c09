"""Clocks for tests that read what was written with the time in it, and for tests that would have to wait."""

from __future__ import annotations

from datetime import datetime, timezone

from harness_lib.system.clock import Clock

NOON = "2025-07-01T12:00:00Z"
NOON_IN_NAMES = "20250701T120000Z"


class Noon(Clock):
    """It is noon, for ever."""

    def now(self) -> datetime:
        return datetime(2025, 7, 1, 12, tzinfo=timezone.utc)


class Sleeper(Clock):
    """Time passes while somebody sleeps, and nobody waits for it."""

    slept = 0.0

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

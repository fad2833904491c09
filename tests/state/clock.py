"""Clocks for tests that read the time in what was written, or would have to wait; and a list made at noon."""

from __future__ import annotations

from datetime import datetime, timezone

from harness_lib.state.store import Store
from harness_lib.system.clock import Clock
from harness_lib.system.place.roots import Root
from harness_lib.task import State, Task

NOON = "2025-07-01T12:00:00Z"
NOON_IN_NAMES = "20250701T120000Z"
TASKS = (
    Task("task-001", "First"),
    Task("task-002", "Second", depends_on=("task-001",)),
    Task("task-003"),
)


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


def made_at_noon(root: Root, tasks: tuple[Task, ...] = TASKS) -> Store:
    """Return the store of a list that we wrote ourselves, after four sessions."""
    store = Store(root, timeout=10, clock=Noon())
    assert store.create(State(created=NOON, tasks=tasks, sessions=(), session_count=4)) == ()
    return store

"""A worker that was let take a task, and found another one faster, counts for nothing: the run goes on.

Its process is played by a script here, as who is faster cannot be told to real ones; all else is a run's own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness_lib.attempts import worker_worktrees
from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.rules.events import Claimed, Ended, Event, Gone, News, Ready
from harness_lib.rules.run_state import Budget
from harness_lib.runs.options import Options, WorkerConfig
from harness_lib.runs.scheduler import Scheduler
from harness_lib.runs.worker_pool import WorkerPool
from harness_lib.state.api import Questions
from tests.runs.workshop import Workshop

FAST, LATE = 1, 2
# So often is a run that has nothing to hear, and lets nobody go on, asked once more.
PATIENCE = 5


class Script(WorkerPool):
    """Two workers: the late one loses its first task to the fast one; whoever is let go then has a task."""

    def __init__(self) -> None:
        self.reports: list[Event] = []
        self.admitted: list[int] = []
        self.silences = 0
        self._workers: list[int] = []

    @property
    def numbers(self) -> list[int]:
        return self._workers

    def start(self, config: WorkerConfig) -> None:
        self._workers = [*self._workers, config.number]
        self._says(config.number, Ready())

    def admit(self, number: int) -> None:
        self.admitted.append(number)
        if number == LATE and self.admitted.count(LATE) == 1:
            self._says(LATE, Ready())
            return
        task = f"task-00{len(self.admitted)}"
        for news in (Claimed(task, task, 1), Ended(task, "completed"), Ready()):
            self._says(number, news)

    def listen(self, _seconds: float) -> Iterator[Event]:
        self.silences = 0 if self.reports else self.silences + 1
        if self.silences > PATIENCE:
            pytest.fail(f"the run waits for ever: only {self.admitted} were let take a task")
        said, self.reports = self.reports, []
        yield from said

    def hold_back(self, *, limited: bool) -> None:
        """Its workers start no agents."""

    def drain(self, *numbers: int) -> None:
        for number in numbers:
            self._says(number, Gone(0, ""))
        self._workers = []

    def end(self) -> Iterator[Event]:
        yield from ()

    def _says(self, number: int, news: News) -> None:
        self.reports.append(Event(number, 1.0, news))


def test_a_worker_that_was_too_late_does_not_stall_a_run_of_so_many_tasks(workshop: Workshop) -> None:
    for name in ("a", "b", "c"):
        workshop.file_task(name)
    ctx = workshop.context()
    options = Options(workers=2, budget=Budget(max_tasks=2), final_check="none")
    run, pool = Scheduler(ctx, options, lambda _event, _state: None), Script()

    run.run_workers(pool, worker_worktrees.directory_of(ctx, "run-1"))

    assert pool.admitted[:2] == [FAST, LATE]
    assert len(pool.admitted) == 3
    assert run.why == "limit"
    assert run.state.before.attempts == 2


def test_admitting_to_an_idle_run_needs_no_look(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read a list of thousands of tasks takes longer than to start an agent."""
    for name in ("a", "b", "c"):
        workshop.file_task(name)
    asked: list[int] = []

    def is_full(_questions: Questions, _ctx: Context, at_work: int) -> bool:
        asked.append(at_work)
        return False

    monkeypatch.setattr(sessions, "is_full", is_full)
    ctx = workshop.context()
    options = Options(workers=2, budget=Budget(max_tasks=2), final_check="none")
    run = Scheduler(ctx, options, lambda _event, _state: None)

    run.run_workers(Script(), worker_worktrees.directory_of(ctx, "run-1"))

    assert asked
    assert min(asked) == 1

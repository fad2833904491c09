"""Thirty-two processes on one list: every task is claimed once and completed once, and nobody is left out.

`benchmarks/run.py` lets them work on the 2,000 tasks of design section 11, which takes minutes on two cores.
Here each has four, and meets the same locks in the same crowd.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contention import crowd
from tests.contention.crowd import Crowd, Report

PROCESSES = 32
TASKS = 128


def assert_each_exactly_once(on: Crowd, reports: Sequence[Report], tasks: int) -> None:
    assert [error for report in reports for error in report.errors] == []
    assert sum(report.finished for report in reports) == tasks
    state = on.state()
    assert {task.status for task in state.tasks} == {"completed"}
    lines = on.lines()
    assert set(lines.values()) == {1}
    assert len(lines) == 2 * tasks


@pytest.mark.timeout(300)
def test_each_task_is_claimed_and_completed_exactly_once(tmp_path: Path) -> None:
    on = crowd.make(tmp_path, workers=PROCESSES, tasks=TASKS)

    reports = on.work([crowd.WORKER] * PROCESSES)

    assert_each_exactly_once(on, reports, TASKS)
    assert {task.fence for task in on.state().tasks} == {1}
    # First come, first served: nobody gets less than half of a fair share.
    assert min(report.finished for report in reports) >= TASKS // PROCESSES // 2


@pytest.mark.timeout(300)
def test_half_of_them_may_follow_the_prose(tmp_path: Path) -> None:
    """They exclude us and we exclude them; among themselves they need patience (see `prose.py`)."""
    on = crowd.make(tmp_path, workers=PROCESSES, tasks=TASKS)

    reports = on.work([crowd.WORKER, on.prose("--patient")] * (PROCESSES // 2))

    assert_each_exactly_once(on, reports, TASKS)
    assert sum(report.finished for report in reports[::2]) > 0
    assert sum(report.finished for report in reports[1::2]) > 0


@pytest.mark.timeout(300)
def test_one_who_follows_the_recipe_to_the_letter_never_takes_our_lock_for_a_dead_one(tmp_path: Path) -> None:
    on = crowd.make(tmp_path, workers=8, tasks=60)

    reports = on.work([on.prose(), *[crowd.WORKER] * 7])

    assert_each_exactly_once(on, reports, 60)

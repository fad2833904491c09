"""Many processes on one list: every task is claimed once and completed once, and nobody is left out.

The full size is 32 processes and 2,000 tasks, which takes minutes on two cores: HARNESS_TEST_CROWD=2000.
Without it there are six, with three tasks each, and they meet the same locks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.contention import crowd
from tests.contention.crowd import Crowd, Report

PROCESSES = 32 if "HARNESS_TEST_CROWD" in os.environ else 6
TASKS = int(os.environ.get("HARNESS_TEST_CROWD", 3 * PROCESSES))
# A hang must end some day; a slow machine must not.
SECONDS = 300 + TASKS


def assert_each_exactly_once(on: Crowd, reports: Sequence[Report], tasks: int) -> None:
    assert [error for report in reports for error in report.errors] == []
    assert sum(report.finished for report in reports) == tasks
    state = on.state()
    assert {task.status for task in state.tasks} == {"completed"}
    lines = on.lines()
    assert set(lines.values()) == {1}
    assert len(lines) == 2 * tasks


@pytest.mark.timeout(SECONDS)
def test_each_task_is_claimed_and_completed_exactly_once(tmp_path: Path) -> None:
    on = crowd.make(tmp_path, workers=PROCESSES, tasks=TASKS)

    reports = on.work([crowd.WORKER] * PROCESSES)

    assert_each_exactly_once(on, reports, TASKS)
    assert {task.fence for task in on.state().tasks} == {1}
    # First come, first served: nobody gets less than half of a fair share.
    assert min(report.finished for report in reports) >= TASKS // PROCESSES // 2


@pytest.mark.timeout(SECONDS)
def test_half_of_them_may_follow_the_legacy_protocol(tmp_path: Path) -> None:
    """They exclude us and we exclude them; among themselves they need patience (see `legacy_agent.py`).

    Here nobody is served first who came first, so each takes its share and waits for it as long as it must.
    """
    on, share = crowd.make(tmp_path, workers=PROCESSES, tasks=TASKS), f"--most={TASKS // PROCESSES}"
    ours, theirs = (*crowd.WORKER, share), on.legacy("--patient", share)

    reports = on.work([ours, theirs] * (PROCESSES // 2))

    assert_each_exactly_once(on, reports, TASKS)
    assert {report.finished for report in reports} == {TASKS // PROCESSES}


@pytest.mark.timeout(300)
def test_one_who_follows_the_recipe_to_the_letter_never_takes_our_lock_for_a_dead_one(tmp_path: Path) -> None:
    workers, tasks = (8, 40) if TASKS >= 40 else (4, 12)
    on = crowd.make(tmp_path, workers=workers, tasks=tasks)

    reports = on.work([on.legacy(), *[crowd.WORKER] * (workers - 1)])

    assert_each_exactly_once(on, reports, tasks)

"""The numbers of a list."""

from __future__ import annotations

from hypothesis import given

from harness_lib.rules import stats
from harness_lib.task import Checkpoint, Recheck, State, Task
from tests.rules.lists import BLOCKED, state, states, waiting

EXAMPLE = (
    Task("a", status="completed", attempts=1),
    Task("b", status="failed", attempts=1, checkpoints=(Checkpoint(1, 2),)),
    *waiting(c="", d="b", e="c"),
)


def test_the_line_of_the_seeds_example() -> None:
    assert (
        stats.render(stats.count(state(*EXAMPLE)))
        == "tasks_total=5 completed=1 failed=1 pending=3 blocked=0 attempts_total=2 checkpoints=1"
    )


def test_tasks_in_progress_stand_behind_the_seeds_fields() -> None:
    """And attempts of tasks that were retried or removed stay counted."""
    assert stats.render(stats.count(State(attempts_reset=3, tasks=(Task("a", status="in_progress"),)))) == (
        "tasks_total=1 completed=0 failed=0 pending=0 blocked=0 attempts_total=3 checkpoints=0 in_progress=1"
    )


def test_blocked_are_pending_tasks_that_depend_directly_on_one_failed_for_good() -> None:
    counts = stats.count(
        state(
            Task("gone", status="failed", attempts=3),
            Task("doomed", status="failed", error_log=(BLOCKED,)),
            Task("retry", status="failed", attempts=2),
            Task("worked", status="in_progress", depends_on=("gone",)),
            *waiting(a="gone", b="a", c="doomed gone", d="retry"),
        )
    )

    assert counts.blocked == 2
    assert (counts.pending, counts.permanent, counts.retryable) == (4, 2, 1)


def test_what_only_somebody_elses_write_calls_completed_is_pending() -> None:
    counts = stats.count(
        state(
            Task("gone", status="failed", attempts=3),
            Task("a", status="completed", unproven=True, depends_on=("gone",)),
            Task("b", status="completed", recheck=Recheck("a" * 40, passed=False)),
            Task("c", status="in_progress", unproven=True),
        )
    )

    assert (counts.pending, counts.completed, counts.blocked, counts.in_progress) == (1, 1, 1, 1)
    assert counts.red == 1


@given(states())
def test_the_numbers_add_up(before: State) -> None:
    counts = stats.count(before)

    assert counts.total == len(before.tasks)
    assert counts.total == counts.completed + counts.failed + counts.pending + counts.in_progress
    assert counts.failed == counts.retryable + counts.permanent
    assert counts.blocked <= counts.pending

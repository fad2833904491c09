"""The counts of a list, as its log has them, and what is old enough, or too much, to be kept."""

from __future__ import annotations

from hypothesis import given

from harness_lib.rules import stats
from harness_lib.rules.stats import SECONDS_PER_DAY, Old, outdated
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


# -- what is old enough, or too much, to be kept


NOW = 1000 * SECONDS_PER_DAY


def old(name: str, days: float, size: int = 1) -> Old:
    return Old(name, NOW - days * SECONDS_PER_DAY, size)


def test_what_is_older_goes_the_oldest_first() -> None:
    files = [old("new", 1), old("older", 31), old("oldest", 90), old("edge", 30)]
    assert [each.name for each in outdated(files, NOW, 30, 100)] == ["oldest", "older"]


def test_beyond_the_size_the_oldest_go_and_a_giant_does_not_take_the_rest_with_it() -> None:
    files = [old("one", 1, 40), old("giant", 2, 500), old("two", 3, 40), old("three", 4, 40)]
    assert [each.name for each in outdated(files, NOW, 30, 100)] == ["three", "giant"]


def test_what_just_fits_is_kept() -> None:
    assert outdated([old("one", 1, 50), old("two", 2, 50)], NOW, 30, 100) == ()

"""What is kept of attempts: their cost, tokens and times; the last ones, and nothing of what cost nothing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from harness_lib import timestamps
from harness_lib.rules import attempts
from harness_lib.task import Attempt, Task

BEGAN = datetime(2025, 7, 1, 10, tzinfo=timezone.utc)
LATER = BEGAN + timedelta(minutes=5)
CLAIMED = Task("a", status="in_progress", fence=1, claimed_at=timestamps.render(BEGAN))


def test_what_each_agent_of_an_attempt_has_used_is_added_up_to_the_millionth_of_a_dollar() -> None:
    task = attempts.spend(attempts.spend(CLAIMED, 0.1, 1000), 0.20000049, 200)

    done = attempts.ended(task, LATER, "completed")

    assert done.attempt_log == (
        Attempt(1, 1, "completed", timestamps.render(BEGAN), timestamps.render(LATER), 0.3, 1200),
    )
    assert attempts.seconds(done.attempt_log[0]) == 300


def test_each_claim_is_an_attempt_of_its_own_and_leaves_those_before_it_alone() -> None:
    task = attempts.ended(attempts.spend(CLAIMED, 1, 1)._replace(attempts=1), LATER, "failed")

    for _ in range(3):
        task = attempts.spend(task._replace(fence=2), 0, 2)

    assert [(each.number, each.outcome, each.tokens) for each in task.attempt_log] == [
        (1, "failed", 1),
        (2, None, 6),
    ]


def test_the_number_of_an_attempt_follows_those_that_were_counted() -> None:
    done = attempts.ended(CLAIMED._replace(attempts=2), LATER, "completed")
    failed = attempts.ended(CLAIMED._replace(attempts=2), LATER, "failed")

    assert (done.attempt_log[0].number, failed.attempt_log[0].number) == (3, 2)


def test_one_that_the_legacy_protocol_has_ended_is_not_gone_on_with() -> None:
    left = attempts.spend(CLAIMED, 1, 1)
    assert len(attempts.ended(left._replace(fence=2), LATER, "completed").attempt_log) == 2


def test_a_claim_that_is_handed_back_is_kept_only_where_it_has_cost_something() -> None:
    assert attempts.ended(CLAIMED, LATER, "pending") == CLAIMED
    assert attempts.ended(attempts.spend(CLAIMED, 0, 7), LATER, "pending").attempt_log[0].tokens == 7


def test_only_the_last_ones_are_kept() -> None:
    task = CLAIMED
    for fence in range(1, 30):
        task = attempts.ended(task._replace(fence=fence, attempts=fence), LATER, "failed")
    assert [each.number for each in task.attempt_log] == list(range(20, 30))


def test_those_of_a_run_are_those_that_have_ended_since_it_began() -> None:
    task = attempts.ended(CLAIMED._replace(attempts=1), LATER, "failed")
    assert len(attempts.since(task, LATER)) == 1
    assert attempts.since(task, LATER + timedelta(seconds=1)) == ()


@pytest.mark.parametrize(
    ("began", "ended"),
    [(None, LATER), (BEGAN, None), (BEGAN, BEGAN), (LATER, BEGAN)],
    ids=["no beginning", "no end", "at once", "a clock that was set back"],
)
def test_an_attempt_of_no_known_length_took_no_time(began: datetime | None, ended: datetime | None) -> None:
    first, last = (None if moment is None else timestamps.render(moment) for moment in (began, ended))

    assert attempts.seconds(Attempt(1, 1, "failed", first, last)) == 0.0

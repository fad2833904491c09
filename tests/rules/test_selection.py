"""Which task comes next, and why one does not."""

from __future__ import annotations

import pytest
from hypothesis import given

from harness_lib import timestamps
from harness_lib.errors import UsageError
from harness_lib.rules import selection
from harness_lib.rules.selection import is_permanent
from harness_lib.task import Intent, State, Task
from tests.rules.lists import BLOCKED, NOW, STAMP, state, states, waiting

FAILED = Task("a", status="failed", attempts=1)


def test_the_user_sees_first_what_is_at_work_then_what_is_halted_failed_next_and_done() -> None:
    tasks = [
        Task("done-10", status="completed"),
        Task("done-9", status="completed"),
        Task("waits-10", depends_on=("next-2",)),
        Task("waits-9", depends_on=("next-2",)),
        Task("next-1"),
        Task("next-2", priority="P0"),
        FAILED._replace(id="again"),
        Task("for-good", status="failed", attempts=3),
        Task("said", status="completed", unproven=True),
        Task("halted", halt="CONFIG: no check"),
        Task("works-2", status="in_progress", claimed_by="w"),
        Task("works-1", status="in_progress", claimed_by="w", halt="x", unproven=True),
    ]

    order = [task.id for task in selection.interesting(state(*tasks))]

    assert order == [
        *("works-1", "works-2", "halted", "said", "again", "for-good"),
        *("next-2", "next-1", "waits-9", "waits-10", "done-9", "done-10"),
    ]


def test_an_intent_that_the_legacy_protocol_let_stand_keeps_nobody_from_the_task() -> None:
    """It ended the attempt of a process of ours that had died, and knows no intents."""
    task = Task("a", intent=Intent("rollback", STAMP))

    assert selection.pick(state(task)) is task
    assert selection.why(state(task), "a", NOW).eligible


def _turn(task: Task) -> tuple[bool, str, float, int]:
    """Return when it is the turn of a drawn task, as the protocol says it."""
    retry = task.status == "failed"
    failed_at = timestamps.parse(task.failed_at).timestamp() if retry and task.failed_at else 0.0
    return retry, task.priority, failed_at, int(task.id[1:])


@given(states())
def test_all_that_may_be_claimed_comes_in_its_turn_whatever_the_order_of_the_list(before: State) -> None:
    completed = {task.id for task in before.tasks if task.status == "completed" and not task.unproven}
    may_be_claimed = [
        task
        for task in before.tasks
        if task.halt is None
        and (task.status == "pending" or (task.status == "failed" and not is_permanent(task)))
        and completed.issuperset(task.depends_on)
    ]

    ranked = selection.ranked(before)

    assert ranked == sorted(may_be_claimed, key=_turn)
    assert selection.pick(before) is (ranked[0] if ranked else None)
    assert selection.ranked(before._replace(tasks=before.tasks[::-1])) == ranked
    for task in before.tasks:
        why = selection.why(before, task.id, NOW)
        assert why.eligible == (task in ranked)
        assert why.reasons


LEASED = Task("a", status="in_progress", claimed_by="w1", claimed_at=STAMP)


@pytest.mark.parametrize(
    ("tasks", "reasons"),
    [
        pytest.param((Task("a"),), ("next: pending, P1",), id="next"),
        pytest.param(
            (FAILED, Task("b")),
            ("number 2 of 2 to claim (retry, attempts 1/3, P1); next is b",),
            id="later",
        ),
        pytest.param(
            (Task("a", status="completed", completed_at=STAMP),), (f"completed at {STAMP}",), id="completed"
        ),
        pytest.param(
            (Task("a", status="completed", completed_at=STAMP, unproven=True),),
            (f"{selection.UNPROVEN}: harness start has its check run",),
            id="unproven",
        ),
        pytest.param(
            (Task("a", status="completed"),),
            ("completed at an unknown time",),
            id="completed by the legacy protocol",
        ),
        pytest.param(
            (
                Task("a", depends_on=("b", "c", "d", "e", "e")),
                Task("b"),
                Task("c", status="failed", attempts=3),
                Task("e", status="completed", unproven=True),
            ),
            (
                "waits for b (pending)",
                "depends on c, which has failed for good",
                "depends on d, which is not in the list",
                "waits for e (unproven)",
            ),
            id="dependencies",
        ),
        pytest.param((LEASED,), (f"in progress by w1 since {STAMP}",), id="claimed without a lease"),
        pytest.param(
            (LEASED._replace(lease_expires_at="2025-07-01T10:00:01Z"),),
            ("in progress by w1, leased until 2025-07-01T10:00:01Z",),
            id="leased",
        ),
        pytest.param(
            (LEASED._replace(lease_expires_at=STAMP),),
            (f"in progress by w1, whose lease ended at {STAMP}: harness recover takes it back",),
            id="lease ended",
        ),
        pytest.param((Task("a", status="in_progress"),), ("in progress, claimed by nobody",), id="nobody's"),
        pytest.param(
            (LEASED._replace(intent=Intent("rollback", STAMP), halt="no sh"),),
            (
                f"in progress by w1 since {STAMP}",
                f"a rollback is under way since {STAMP}",
                "halted until the user has acted: no sh",
            ),
            id="rollback under way",
        ),
        pytest.param(
            (Task("a", status="failed", attempts=3, error_log=(BLOCKED,), halt="CONFIG"),),
            (
                "halted until the user has acted: CONFIG",
                "attempts used up (3/3): harness retry a gives it new ones",
                f"failed for good: {BLOCKED}",
            ),
            id="failed for good",
        ),
        pytest.param(waiting(a="b", b="a"), ("in a cycle: a -> b -> a", "waits for b (pending)"), id="cycle"),
    ],
)
def test_why(tasks: tuple[Task, ...], reasons: tuple[str, ...]) -> None:
    assert selection.why(state(*tasks), "a", NOW).reasons == reasons


def test_why_of_an_unknown_task_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="There is no task 'x' in this list") as caught:
        selection.why(state(), "x", NOW)

    assert caught.value.hint == "See which there are: harness status"


def test_what_can_be_proven_is_what_somebody_else_has_completed() -> None:
    doubted = Task("a", status="completed", unproven=True)
    tasks = (doubted, Task("b", unproven=True), Task("c", status="completed"))

    assert selection.unproven(state(*tasks)) == [doubted]

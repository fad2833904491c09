"""Which task comes next, and why one does not."""

from __future__ import annotations

import pytest
from hypothesis import given

from harness_lib.errors import UsageError
from harness_lib.rules import selection
from harness_lib.rules.failures import is_permanent
from harness_lib.task import Intent, State, Task
from tests.rules.lists import BLOCKED, NOW, STAMP, ago, state, states, waiting


def _order(*tasks: Task) -> list[str]:
    return [task.id for task in selection.ranked(state(*tasks))]


def test_pending_by_priority_then_by_number() -> None:
    tasks = [Task("t10"), Task("t9"), Task("t30", priority="P2"), Task("t20", priority="P0")]

    assert _order(*tasks) == ["t20", "t9", "t10", "t30"]


def test_a_pending_task_of_low_priority_comes_before_a_retry_of_high_priority() -> None:
    assert _order(Task("a", status="failed", attempts=1, priority="P0"), Task("b", priority="P2")) == [
        "b",
        "a",
    ]


def test_retries_by_priority_then_the_oldest_failure_then_the_number() -> None:
    failed = Task("t1", status="failed", attempts=1, failed_at=ago(10))
    tasks = [
        failed,
        failed._replace(id="t2", failed_at=ago(60)),
        failed._replace(id="t3", priority="P0", failed_at=STAMP),
        failed._replace(id="t10", failed_at="2025-07-01T11:59:00+02:00"),
        failed._replace(id="t5", failed_at=None),
    ]

    assert _order(*tasks) == ["t3", "t5", "t2", "t10", "t1"]


def test_when_a_pending_task_once_failed_plays_no_part() -> None:
    """Only retries go by their failure: a task that is pending again stands by its number."""
    tasks = [Task("t2", failed_at=ago(60)), Task("t1", failed_at=ago(10)), Task("t3")]

    assert _order(*tasks) == ["t1", "t2", "t3"]


def test_a_person_sees_first_what_is_at_work_then_what_is_halted_failed_next_and_done() -> None:
    tasks = [
        Task("done-10", status="completed"),
        Task("done-9", status="completed"),
        Task("waits-10", depends_on=("next-2",)),
        Task("waits-9", depends_on=("next-2",)),
        Task("next-1"),
        Task("next-2", priority="P0"),
        Task("again", status="failed", attempts=1),
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


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(Task("a", status="completed"), id="completed"),
        pytest.param(
            Task("a", status="in_progress", claimed_by="w", lease_expires_at=ago(9)), id="in progress"
        ),
        pytest.param(Task("a", status="failed", attempts=3), id="attempts used up"),
        pytest.param(Task("a", status="failed", error_log=(BLOCKED,)), id="blocked"),
        pytest.param(Task("a", halt="CONFIG"), id="halted"),
        pytest.param(Task("a", depends_on=("a",)), id="waits for itself"),
        pytest.param(Task("a", depends_on=("nothing",)), id="waits for nothing known"),
    ],
)
def test_never_picked(task: Task) -> None:
    assert selection.pick(state(task)) is None
    assert not selection.why(state(task), "a", NOW).eligible


def test_an_intent_that_the_prose_let_stand_keeps_nobody_from_the_task() -> None:
    """It ended the attempt of a process of ours that had died, and knows no intents."""
    task = Task("a", intent=Intent("rollback", STAMP))

    assert selection.pick(state(task)) is task
    assert selection.why(state(task), "a", NOW).eligible


@given(states())
def test_what_is_picked_has_all_dependencies_completed_and_is_first_of_all(any_state: State) -> None:
    ranked = selection.ranked(any_state)

    assert selection.pick(any_state) is (ranked[0] if ranked else None)
    completed = {task.id for task in any_state.tasks if task.status == "completed"}
    for task in ranked:
        assert completed.issuperset(task.depends_on)
        assert task.status in ("pending", "failed")
        assert task.halt is None
        assert not is_permanent(task)


@given(states())
def test_the_order_does_not_depend_on_the_order_of_the_list(any_state: State) -> None:
    turned = any_state._replace(tasks=any_state.tasks[::-1])

    assert selection.ranked(turned) == selection.ranked(any_state)


@given(states())
def test_why_agrees_with_the_selection_and_always_has_a_reason(any_state: State) -> None:
    eligible = {task.id for task in selection.ranked(any_state)}

    for task in any_state.tasks:
        why = selection.why(any_state, task.id, NOW)
        assert why.eligible == (task.id in eligible)
        assert why.reasons


LEASED = Task("a", status="in_progress", claimed_by="w1", claimed_at=STAMP)


@pytest.mark.parametrize(
    ("tasks", "reasons"),
    [
        pytest.param((Task("a"),), ("next: pending, P1",), id="next"),
        pytest.param(
            (Task("a", status="failed", attempts=1), Task("b")),
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
            (Task("a", status="completed"),), ("completed at an unknown time",), id="completed by the prose"
        ),
        pytest.param(
            (Task("a", depends_on=("b",)), Task("b", status="completed", unproven=True)),
            ("waits for b (unproven)",),
            id="waits for an unproven one",
        ),
        pytest.param(
            (Task("a", depends_on=("b", "c", "d")), Task("b"), Task("c", status="failed", attempts=3)),
            (
                "waits for b (pending)",
                "depends on c, which has failed for good",
                "depends on d, which is not in the list",
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
                "halted until a person has acted: no sh",
            ),
            id="rollback under way",
        ),
        pytest.param(
            (Task("a", status="failed", attempts=3, error_log=(BLOCKED,), halt="CONFIG"),),
            (
                "halted until a person has acted: CONFIG",
                "attempts used up (3/3): harness retry a gives it new ones",
                f"failed for good: {BLOCKED}",
            ),
            id="failed for good",
        ),
        pytest.param(waiting(a="b", b="a"), ("in a cycle: a -> b -> a", "waits for b (pending)"), id="cycle"),
    ],
)
def test_why(tasks: tuple[Task, ...], reasons: tuple[str, ...]) -> None:
    why = selection.why(state(*tasks), "a", NOW)

    assert why.reasons == reasons
    assert why.eligible is ("a" in _order(*tasks))


def test_why_of_an_unknown_task_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="There is no task 'x' in this list") as caught:
        selection.why(state(), "x", NOW)

    assert caught.value.hint == "See which there are: harness status"


def test_what_can_be_proven_is_what_somebody_else_has_completed() -> None:
    doubted = Task("a", status="completed", unproven=True)

    assert selection.unproven(state(doubted, Task("b", unproven=True), Task("c", status="completed"))) == [
        doubted
    ]

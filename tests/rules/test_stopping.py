"""When a session has nothing left to do, or may do no more."""

from __future__ import annotations

import pytest
from hypothesis import given

from harness_lib.rules import selection, stopping
from harness_lib.rules.failures import is_permanent, validate_dependencies
from harness_lib.task import Recheck, Session, SessionConfig, State, StopReason, Task
from tests.rules.lists import NOW, state, states, waiting

DONE = Task("done", status="completed")
WORKED = Task("worked", status="in_progress", claimed_by="w2")
UNPROVEN = Task("unproven", status="completed", unproven=True)
GONE = Task("gone", status="failed", attempts=3)
RETRY = Task("retry", status="failed", attempts=1)
HALTED = Task("halted", halt="CONFIG")


@pytest.mark.parametrize(
    ("tasks", "stop", "remains"),
    [
        pytest.param((), "done", False, id="empty list"),
        pytest.param((DONE,), "done", False, id="all completed"),
        pytest.param((DONE, Task("a")), None, True, id="pending"),
        pytest.param((DONE, RETRY), None, True, id="retryable"),
        pytest.param((WORKED, Task("a")), None, True, id="others work, more is free"),
        pytest.param((DONE, GONE), "blocked", False, id="failed for good"),
        pytest.param((GONE, *waiting(a="gone")), "blocked", True, id="doomed, not yet recorded"),
        pytest.param(waiting(a="b", b="a"), "blocked", True, id="a ring, not yet recorded"),
        pytest.param((GONE, WORKED), "waiting", True, id="others hold the rest"),
        pytest.param((WORKED, *waiting(a="worked")), "waiting", True, id="waits for what others do"),
        pytest.param((DONE, UNPROVEN), None, True, id="unproven"),
        pytest.param((GONE, UNPROVEN), None, True, id="unproven beside what has failed for good"),
        pytest.param((DONE, HALTED), "waiting", True, id="halted"),
        pytest.param((HALTED, *waiting(a="halted")), "waiting", True, id="waits for a halted one"),
        pytest.param(
            (Task("a", status="failed", attempts=3, halt="x"),),
            "blocked",
            False,
            id="halted, failed for good",
        ),
        pytest.param(
            (GONE, Task("b", status="completed", halt="x")), "blocked", False, id="halted, and completed"
        ),
    ],
)
def test_no_work_and_work_remains(tasks: tuple[Task, ...], stop: StopReason | None, remains: bool) -> None:
    assert stopping.no_work(state(*tasks)) == stop
    assert stopping.work_remains(state(*tasks)) is remains


@given(states())
def test_a_session_stops_exactly_when_nothing_can_be_claimed(any_state: State) -> None:
    assert (stopping.no_work(any_state) is None) == (selection.pick(any_state) is not None)


@given(states())
def test_once_dependencies_are_validated_blocked_means_that_all_the_rest_failed_for_good(
    any_state: State,
) -> None:
    validated, _found = validate_dependencies(any_state, NOW)

    if stopping.no_work(validated) in ("blocked", "done"):
        assert not stopping.work_remains(validated)
        assert all(task.status == "completed" or is_permanent(task) for task in validated.tasks)


@pytest.mark.parametrize(
    ("limit", "finished", "spent"),
    [
        (20, 19, False),
        (20, 20, True),
        (20, 21, True),
        (1, 0, False),
        (1, 1, True),
        (0, 1000, False),
        (-1, 5, False),
    ],
)
def test_max_tasks_per_session_counts_finished_attempts_and_0_is_no_limit(
    limit: int, finished: int, spent: bool
) -> None:
    limited = State(session_config=SessionConfig(max_tasks_per_session=limit))
    session = Session(1, "w1", "host", finished_attempts=finished)

    assert stopping.session_spent(limited, session) == ("max_tasks_per_session" if spent else None)


@pytest.mark.parametrize(
    ("limit", "count", "spent"),
    [(50, 49, False), (50, 50, True), (50, 51, True), (1, 0, False), (1, 1, True), (0, 999, False)],
)
def test_max_sessions_may_run_the_last_one_too(limit: int, count: int, spent: bool) -> None:
    limited = State(session_config=SessionConfig(max_sessions=limit), session_count=count)

    assert stopping.sessions_spent(limited) == ("max_sessions" if spent else None)


@pytest.mark.parametrize(
    ("tasks", "alone"),
    [
        pytest.param((HALTED,), True, id="only halted"),
        pytest.param((HALTED, DONE, GONE), True, id="halted, and what is over"),
        pytest.param((HALTED, WORKED), False, id="another works"),
        pytest.param((WORKED,), False, id="only another's"),
        pytest.param((HALTED, Task("a")), False, id="something to take"),
        pytest.param((DONE,), False, id="done"),
    ],
)
def test_waiting_is_in_vain_where_only_a_person_can_free_what_is_left(
    tasks: tuple[Task, ...], alone: bool
) -> None:
    assert stopping.awaits_person(State(tasks=tasks)) is alone


@pytest.mark.parametrize("rest", [(), (GONE,)], ids=["all are completed", "the rest has failed for good"])
def test_a_red_task_is_why_nothing_goes_on_and_hooks_hold(rest: tuple[Task, ...]) -> None:
    found = Recheck("a" * 40, passed=False)
    red = state(Task("a", status="completed", recheck=found), *rest)
    excused = state(Task("a", status="completed", recheck=found._replace(excuse="not_reproducible")), *rest)

    assert (stopping.no_work(red), stopping.holds_agents(red)) == ("recheck_failed", True)
    assert (stopping.no_work(excused), stopping.holds_agents(excused)) == (
        "blocked" if rest else "done",
        False,
    )

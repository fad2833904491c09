"""When a session has nothing left to do, or may do no more, and what only the user can free."""

from __future__ import annotations

import pytest
from hypothesis import given

from harness_lib.errors import ConfigError, EnvSetupError, RefusedError
from harness_lib.rules import attempts, selection, stats
from harness_lib.rules.selection import is_permanent, validate_dependencies
from harness_lib.task import (
    CATEGORIES,
    HALT_KINDS,
    HaltKind,
    Recheck,
    Session,
    SessionConfig,
    State,
    StopReason,
    Task,
)
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
            (GONE._replace(halt="x"), DONE._replace(halt="x")), "blocked", False, id="halted, and over"
        ),
    ],
)
def test_no_work_and_work_remains(tasks: tuple[Task, ...], stop: StopReason | None, remains: bool) -> None:
    assert stats.no_work(state(*tasks)) == stop
    assert stats.work_remains(state(*tasks)) is remains
    assert stats.holds_agents(state(*tasks)) is remains


@given(states())
def test_a_session_stops_exactly_when_nothing_can_be_claimed_or_proven(before: State) -> None:
    """Once dependencies are validated, `blocked` means that all the rest has failed for good."""
    goes_on = selection.pick(before) is not None or bool(selection.unproven(before))
    assert (stats.no_work(before) is None) == goes_on

    validated, _found = validate_dependencies(before, NOW)
    if stats.no_work(validated) in ("blocked", "done"):
        assert not stats.work_remains(validated)
        assert all(task.is_done or is_permanent(task) for task in validated.tasks)


@pytest.mark.parametrize(
    ("limit", "used", "spent"),
    [(20, 19, False), (20, 20, True), (20, 21, True), (1, 0, False), (1, 1, True), (0, 1000, False)],
)
def test_a_limit_is_reached_when_it_is_used_and_0_is_no_limit(limit: int, used: int, spent: bool) -> None:
    config = SessionConfig(max_tasks_per_session=limit, max_sessions=limit)
    limited = State(session_config=config, session_count=used)
    session = Session(1, "w1", "host", finished_attempts=used)

    assert stats.session_spent(limited, session) == ("max_tasks_per_session" if spent else None)
    assert stats.sessions_spent(limited) == ("max_sessions" if spent else None)


@pytest.mark.parametrize(
    ("tasks", "alone"),
    [
        pytest.param((HALTED, DONE, GONE), True, id="halted, and what is over"),
        pytest.param((HALTED, WORKED), False, id="another works"),
        pytest.param((HALTED, Task("a")), False, id="something to take"),
        pytest.param((DONE,), False, id="done"),
    ],
)
def test_waiting_is_in_vain_where_only_the_user_can_help(tasks: tuple[Task, ...], alone: bool) -> None:
    assert stats.awaits_user(state(*tasks)) is alone


@pytest.mark.parametrize(("rest", "stop"), [((), "done"), ((GONE,), "blocked")])
def test_a_red_task_is_why_nothing_goes_on_and_hooks_hold(rest: tuple[Task, ...], stop: StopReason) -> None:
    found = Recheck("a" * 40, passed=False)
    red = state(DONE._replace(recheck=found), *rest)
    excused = state(DONE._replace(recheck=found._replace(excuse="not_reproducible")), *rest)

    assert (stats.no_work(red), stats.holds_agents(red)) == ("recheck_failed", True)
    assert (stats.no_work(excused), stats.holds_agents(excused)) == (stop, False)


def test_hooks_hold_until_the_final_check_was_made() -> None:
    left = state(DONE)._replace(sessions=(Session(1, "w1", "host", final_check=True),))

    assert stats.holds_agents(left)


@pytest.mark.parametrize("kind", [*HALT_KINDS, None])
def test_what_follows_from_a_halt_is_decided_by_its_kind_not_its_words(kind: HaltKind | None) -> None:
    task = Task("a", halt="the user must say what the check is", halt_kind=kind)
    assert attempts.is_for_user(task) is (
        kind in {"CHECK_CHANGED", "SECRET", "JUDGES", "REVIEW", "MERGE", "HUMAN", None}
    )
    assert not attempts.is_for_user(task._replace(halt=None))
    assert attempts.is_lifted_by_an_edit(kind) is (kind in {"CONFIG", "CHECK_CHANGED"})
    # Only where work was kept is there an answer to give.
    assert attempts.takes_an_answer(kind) is (kind in {"SECRET", "JUDGES", "REVIEW", "MERGE"})


def test_an_error_and_a_failure_say_what_must_be_seen_to() -> None:
    errors = (ConfigError("x"), EnvSetupError("x"), RefusedError("x"))
    assert [attempts.of_error(error) for error in errors] == ["CONFIG", "ENV_SETUP", "REFUSED"]
    for category in CATEGORIES:
        assert attempts.of_category(category) == ("CONFIG" if category == "CONFIG" else "ENV_SETUP")

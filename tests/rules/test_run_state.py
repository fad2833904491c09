"""What a run looks like is a fold over its events, and survives the way to another terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import events, run_state
from harness_lib.rules.ahead import Ahead
from harness_lib.rules.budget import Budget, Spent
from harness_lib.rules.events import Ended, Event
from harness_lib.rules.run_state import Row, RunState


def event(kind: str, worker: int | None = 1, at: float = 0.0, **facts: Any) -> Event:
    return events.read({"event": kind, "worker": worker, "at": at, **facts})


def folded(*those: Event) -> RunState:
    """Return the board after `those` events."""
    board = RunState()
    for each in those:
        board = run_state.fold(board, each)
    return board


CLAIMED = event("claimed", at=10.0, task="t1", title="One", attempt=2)
SAID = event("said", last="hm", tokens=70, cost=0.5)


@pytest.mark.parametrize(
    ("those", "row"),
    [
        ([CLAIMED], Row(1, "t1", "One", 2, "prepares", since=10.0)),
        ([CLAIMED, event("step", step="works")], Row(1, "t1", "One", 2, "works", since=10.0)),
        (
            [CLAIMED, event("step", step="limit", until=99.0, message="used up")],
            Row(1, "t1", "One", 2, "limit", since=10.0, until=99.0),
        ),
        (
            [CLAIMED, event("step", step="limit", until=99.0), event("step", step="works")],
            Row(1, "t1", "One", 2, "works", since=10.0),
        ),
        ([CLAIMED, SAID], Row(1, "t1", "One", 2, "prepares", since=10.0, cost=0.5, tokens=70, last="hm")),
        (
            [CLAIMED, SAID, event("ended", at=20.0, task="t1", status="completed")],
            Row(1, None, "", 0, "waits", since=20.0),
        ),
        (
            [event("step", at=4.0, step="limit", until=99.0), event("ready", at=9.0)],
            Row(1, step="waits", since=4.0),
        ),
        (
            [event("idle", at=5.0, why="waiting"), event("ready", at=9.0)],
            Row(1, step="waits", since=5.0),
        ),
        ([event("idle", at=5.0, why="waiting")], Row(1, step="waits", since=5.0, idle="waiting")),
        (
            [event("idle", at=5.0, why="waiting"), event("idle", at=8.0, why="done")],
            Row(1, step="waits", since=5.0, idle="done"),
        ),
        (
            [event("idle", at=5.0, why="waiting"), event("step", step="merges")],
            Row(1, step="merges", since=5.0),
        ),
        ([event("step", at=7.0, step="takes")], Row(1, step="takes", since=7.0)),
        (
            [CLAIMED, event("idle", at=20.0, why="waiting")],
            Row(1, step="waits", since=20.0, idle="waiting"),
        ),
    ],
)
def test_the_row_of_a_worker_after_its_events(those: list[Event], row: Row) -> None:
    assert folded(*those).rows == {1: row}


@pytest.mark.parametrize(
    "other", [event("tick", None), event("warning", None, message="x"), event("warning", 7, message="x")]
)
def test_what_is_no_news_of_a_worker_changes_nothing(other: Event) -> None:
    assert folded(other) == RunState()


@pytest.mark.parametrize(
    ("status", "attempts", "durations"), [("completed", 1, (10.0,)), ("failed", 1, ()), ("pending", 0, ())]
)
def test_what_ended_is_paid_for_and_only_an_attempt_counts(
    status: str, attempts: int, durations: tuple[float, ...]
) -> None:
    board = folded(CLAIMED, SAID, event("ended", at=20.0, task="t1", status=status))
    assert board.before == Spent(0.5, 70, 0.0, attempts)
    assert board.durations == durations


@pytest.mark.parametrize(
    ("event_", "rows"),
    [
        (event("gone", 1, code=-9, message=""), ()),
        (event("idle", 1, why="waiting"), (1,)),
        (event("claimed", 1, task="t2", title="T", attempt=1), (1,)),
    ],
)
def test_what_a_worker_did_not_come_to_the_end_of_is_paid_for(event_: Event, rows: tuple[int, ...]) -> None:
    board = folded(CLAIMED, SAID, event_)
    assert board.before == Spent(0.5, 70)
    assert tuple(board.rows) == rows
    assert board.spent(0.0) == board.before


def test_what_was_spent_is_what_is_paid_and_what_is_under_way() -> None:
    board = folded(CLAIMED, SAID)._replace(began=10.0, before=Spent(1.0, 30, 0.0, 2))

    assert board.spent(25.0) == Spent(1.5, 100, 15.0, 2)
    assert board.spent(5.0).seconds == 0.0


def test_limits_go_with_the_board() -> None:
    limited = RunState(limits=Budget(max_cost=2.5, task_tokens=7))

    assert run_state.read(json.loads(json.dumps(run_state.write(limited)))) == limited


@pytest.mark.parametrize(
    ("durations", "ahead", "workers", "seconds"),
    [
        ((), Ahead(3, 1), 1, None),
        ((10.0,), Ahead(3, 1), 0, None),
        ((10.0,), Ahead(0, 0), 2, 0.0),
        ((10.0,), Ahead(3, 1), 1, 30.0),
        ((10.0,), Ahead(3, 1), 2, 20.0),
        ((10.0,), Ahead(1, 1), 4, 10.0),
        # However many workers there are, three that wait for each other take three rounds.
        ((10.0,), Ahead(4, 3), 4, 30.0),
        # One that waited a night for a limit says nothing about the others.
        ((10.0, 30000.0, 12.0), Ahead(2, 1), 1, 24.0),
        ((1.0, 2.0, 3.0, 4.0), Ahead(1, 1), 1, 3.0),
    ],
)
def test_the_estimate(
    durations: tuple[float, ...], ahead: Ahead, workers: int, seconds: float | None
) -> None:
    assert run_state.estimate(RunState(durations=durations), ahead, workers) == seconds


EVENTS = st.lists(
    st.one_of(
        st.builds(
            lambda worker, at: event("claimed", worker, at, task="t", title="T", attempt=1),
            st.integers(1, 3),
            st.floats(0, 100),
        ),
        st.builds(
            lambda worker, tokens: event("said", worker, last="x", tokens=tokens, cost=tokens / 100),
            st.integers(1, 3),
            st.integers(0, 1000),
        ),
        st.builds(
            lambda worker, status: event("ended", worker, 200.0, task="t", status=status),
            st.integers(1, 3),
            st.sampled_from(["completed", "failed", "pending"]),
        ),
        st.builds(lambda worker: event("step", worker, step="works", until=1.5), st.integers(1, 3)),
        st.builds(lambda worker: event("idle", worker, why="waiting"), st.integers(1, 3)),
    ),
    max_size=30,
)


@given(EVENTS)
def test_a_board_is_the_same_after_its_way_through_a_file(those: list[Event]) -> None:
    board = folded(*those)
    assert run_state.read(json.loads(json.dumps(run_state.write(board)))) == board


@given(EVENTS)
def test_what_was_spent_on_ended_attempts_is_never_forgotten(those: list[Event]) -> None:
    board = RunState()
    for each in those:
        following = run_state.fold(board, each)
        if isinstance(each.news, Ended):
            assert following.spent(300.0).tokens == board.spent(300.0).tokens
        assert following.before.tokens >= board.before.tokens
        board = following
    assert board.spent(300.0).attempts == sum(
        isinstance(each.news, Ended) and each.news.status != "pending" for each in those
    )


@pytest.mark.parametrize("document", [{}, {"rows": [{"worker": 1, "new": 2}]}, {"rows": [3]}])
def test_what_is_no_board_is_said_so(document: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError)):
        run_state.read(document)

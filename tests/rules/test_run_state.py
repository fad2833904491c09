"""What a run looks like is a fold over its events, and survives the way to another terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import events, run_state
from harness_lib.rules.events import MERGER, Ended, Event
from harness_lib.rules.run_state import Budget, Row, RunState, Spent
from harness_lib.rules.stats import Ahead


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


PREPARES = Row(1, "t1", "One", 2, "prepares", since=10.0)
WAITS = Row(1, step="waits")
IDLE = event("idle", at=5.0, why="waiting")
LIMIT = event("step", at=4.0, step="limit", until=99.0, message="used up")


@pytest.mark.parametrize(
    ("those", "row"),
    [
        ([CLAIMED], PREPARES),
        ([CLAIMED, event("step", step="works")], PREPARES._replace(step="works")),
        ([CLAIMED, LIMIT], PREPARES._replace(step="limit", until=99.0)),
        ([CLAIMED, LIMIT, event("step", step="works")], PREPARES._replace(step="works")),
        ([CLAIMED, SAID], PREPARES._replace(cost=0.5, tokens=70, last="hm")),
        ([CLAIMED, SAID, event("ended", at=20.0, task="t1", status="completed")], WAITS._replace(since=20.0)),
        ([LIMIT, event("ready", at=9.0)], WAITS._replace(since=4.0)),
        ([IDLE, event("ready", at=9.0)], WAITS._replace(since=5.0)),
        ([IDLE], WAITS._replace(since=5.0, idle="waiting")),
        ([IDLE, event("idle", at=8.0, why="done")], WAITS._replace(since=5.0, idle="done")),
        ([IDLE, event("step", step="merges")], Row(1, step="merges", since=5.0)),
        ([event("step", at=7.0, step="takes")], Row(1, step="takes", since=7.0)),
        ([CLAIMED, event("idle", at=20.0, why="waiting")], WAITS._replace(since=20.0, idle="waiting")),
    ],
)
def test_the_row_of_a_worker_after_its_events(those: list[Event], row: Row) -> None:
    assert folded(*those).rows == {1: row}


@pytest.mark.parametrize("other", [event("tick", None), event("warning", 7, message="x")])
def test_what_is_no_news_of_a_worker_changes_nothing(other: Event) -> None:
    assert folded(other) == RunState()


@pytest.mark.parametrize(
    ("status", "attempts", "durations"), [("completed", 1, (10.0,)), ("failed", 1, ()), ("pending", 0, ())]
)
def test_what_ended_is_paid_for_and_counted(status: str, attempts: int, durations: tuple[float, ...]) -> None:
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


@pytest.mark.parametrize("merged_first", [False, True], ids=["in order", "told first by who merges"])
@pytest.mark.parametrize("status", ["completed", "pending"])
def test_work_that_waits_for_its_merge_is_paid_and_leaves_its_worker_free(
    status: str, merged_first: bool
) -> None:
    queued = event("queued", 1, 40.0, task="t")
    merged = event("ended", MERGER, 50.0, task="t", status=status)
    board = RunState()
    for each in (
        event("claimed", 1, 10.0, task="t", title="T", attempt=1),
        event("said", 1, 20.0, last="x", tokens=7, cost=0.5),
        *((merged, queued) if merged_first else (queued, merged)),
    ):
        board = run_state.fold(board, each)
        if each is queued and not merged_first:
            assert board.queued == ("t",)

    assert (board.queued, board.early) == ((), ())
    assert [row.task for row in board.rows.values()] == [None]
    assert board.before == Spent(0.5, 7, 0, int(status == "completed"))
    assert board.durations == (30.0,)
    gone = run_state.fold(run_state.fold(board, queued), event("gone", MERGER, code=-9, message="killed"))
    assert gone.queued == ()


WORKER = st.integers(1, 3)
EVENTS = st.lists(
    st.one_of(
        st.builds(lambda who, at: event("claimed", who, at, task="t", title="T", attempt=1), WORKER, WORKER),
        st.builds(lambda who, tokens: event("said", who, last="x", tokens=tokens, cost=0.25), WORKER, WORKER),
        st.builds(
            lambda who, status: event("ended", who, 200.0, task="t", status=status),
            WORKER,
            st.sampled_from(["completed", "failed", "pending"]),
        ),
        st.builds(lambda who: event("step", who, step="works", until=1.5), WORKER),
        st.builds(lambda who: event("idle", who, why="waiting"), WORKER),
    ),
    max_size=20,
)


@given(EVENTS)
def test_what_was_spent_is_never_forgotten_nor_lost_through_a_file(those: list[Event]) -> None:
    board = RunState(limits=Budget(max_cost=2.5, task_tokens=7))
    for each in those:
        following = run_state.fold(board, each)
        if isinstance(each.news, Ended):
            assert following.spent(300.0).tokens == board.spent(300.0).tokens
        assert following.before.tokens >= board.before.tokens
        board = following
    ended = [each.news for each in those if isinstance(each.news, Ended)]
    assert board.spent(300.0).attempts == sum(news.status != "pending" for news in ended)
    assert run_state.read(json.loads(json.dumps(run_state.write(board)))) == board


@pytest.mark.parametrize("document", [{}, {"rows": [{"worker": 1, "new": 2}]}, {"rows": [3]}])
def test_what_is_no_board_is_said_so(document: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError)):
        run_state.read(document)

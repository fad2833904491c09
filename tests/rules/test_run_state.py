"""What a run looks like, what it may spend, how much is ahead, and when its workers die too often."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.errors import UsageError
from harness_lib.rules import events, run_state, selection, stats
from harness_lib.rules.events import MERGER, Ended, Event
from harness_lib.rules.run_state import Budget, Deaths, Row, RunState, Spent
from harness_lib.rules.stats import Ahead
from harness_lib.task import State, Task
from tests.rules.lists import state, states, waiting


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


@pytest.mark.parametrize("who", [None, 1], ids=["the run", "the next worker"])
def test_work_of_a_dead_worker_that_is_handed_over_waits_and_costs_no_row(who: int | None) -> None:
    idle = event("idle", 1, 30.0, why="waiting")
    gone = folded(CLAIMED, SAID, event("gone", 1, code=-9, message=""), idle)

    board = run_state.fold(gone, event("queued", who, 40.0, task="t1"))

    assert board == gone._replace(queued=("t1",))
    merged = run_state.fold(board, event("ended", MERGER, 50.0, task="t1", status="completed"))
    assert (merged.queued, merged.early, merged.before.attempts) == ((), (), 1)


@pytest.mark.parametrize("merged_first", [False, True], ids=["in order", "told first by who merges"])
@pytest.mark.parametrize("status", ["completed", "pending"])
def test_work_that_waits_for_its_merge_is_paid_and_leaves_its_worker_free(
    status: str, merged_first: bool
) -> None:
    queued = event("queued", 1, 40.0, task="t")
    merged = event("ended", MERGER, 50.0, task="t", status=status)
    began = (
        event("claimed", 1, 10.0, task="t", title="T", attempt=1),
        event("said", 1, 20.0, last="x", tokens=7, cost=0.5),
    )
    board = folded(*began, *((merged, queued) if merged_first else (queued, merged)))

    assert folded(*began, queued).queued == ("t",)
    assert (board.queued, board.early) == ((), ())
    assert [row.task for row in board.rows.values()] == [None]
    assert board.before == Spent(0.5, 7, 0, int(status == "completed"))
    assert board.durations == (30.0,)
    gone = run_state.fold(run_state.fold(board, queued), event("gone", MERGER, code=-9, message="killed"))
    assert gone.queued == ()


def test_work_that_another_machine_has_taken_over_waits_no_more() -> None:
    board = RunState(queued=("s", "t"), early=("u",))

    assert run_state.taken_over(board, {"t", "x"}).queued == ("s",)
    # Who merges has told of work whose worker died before it told that: another attempt is its own.
    again = run_state.fold(board, event("claimed", 1, 10.0, task="u", title="U", attempt=1))
    assert run_state.fold(again, event("queued", 1, 20.0, task="u")).queued == ("s", "t", "u")


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


# -- limits: when one is reached, in which words, and what is no limit at all


ALL = Budget(
    max_cost=5.0, max_tokens=1000, max_hours=2.0, max_tasks=3, task_cost=1.0, task_tokens=100, task_hours=0.5
)


@pytest.mark.parametrize(
    ("spent", "run", "task"),
    [
        (Spent(), None, None),
        (Spent(cost=0.99, tokens=99, seconds=1799, attempts=2), None, None),
        (Spent(cost=1.0), None, "cost: $1.00 of $1.00"),
        (Spent(tokens=100), None, "tokens: 100 of 100"),
        (Spent(seconds=1800), None, "hours: 0.50 of 0.50"),
        (Spent(cost=5.5), "cost: $5.50 of $5.00", "cost: $5.50 of $1.00"),
        (Spent(tokens=2000), "tokens: 2,000 of 1,000", "tokens: 2,000 of 100"),
        (Spent(seconds=7200), "hours: 2.00 of 2.00", "hours: 2.00 of 0.50"),
        (Spent(attempts=3), "attempts: 3 of 3", None),
    ],
)
def test_which_limit_is_reached(spent: Spent, run: str | None, task: str | None) -> None:
    assert run_state.over(ALL, spent) == run
    assert run_state.task_over(ALL, spent) == task


def test_what_was_spent_is_told_beside_each_limit() -> None:
    half = Budget(max_cost=5.0, max_tasks=3, task_tokens=1000)
    assert run_state.usage(half, Spent(1.5, 12000, 1800.0, 2)) == (
        "cost: $1.50 of $5.00",
        "tokens: 12,000 (no limit)",
        "hours: 0.50 (no limit)",
        "attempts: 2 of 3",
    )
    assert run_state.usage(ALL, Spent(tokens=7, seconds=900.0))[1:3] == (
        "tokens: 7 of 1,000",
        "hours: 0.25 of 2.00",
    )
    assert run_state.task_limits(half) == "tokens 1,000"
    assert run_state.task_limits(ALL) == "cost $1.00, tokens 100, hours 0.50"
    assert run_state.task_limits(Budget()) == "no limit"


def test_what_an_attempt_may_still_cost_is_never_nothing() -> None:
    assert run_state.cost_left(ALL, Spent()) == 1.0
    assert run_state.cost_left(ALL, Spent(cost=0.75)) == 0.25
    assert run_state.cost_left(ALL, Spent(cost=7)) == run_state.LEAST_COST
    assert run_state.cost_left(Budget(), Spent()) is None


amounts = st.floats(0, 1e6)
counts = st.integers(0, 10**9)
budgets = st.builds(Budget, amounts, counts, amounts, counts, amounts, counts, amounts)
spents = st.builds(Spent, amounts, counts, amounts, counts)


@given(budgets, spents, spents)
def test_more_never_frees_from_a_limit_and_zero_is_none(limits: Budget, spent: Spent, more: Spent) -> None:
    both = Spent._make(one + other for one, other in zip(spent, more, strict=True))

    assert run_state.over(limits, spent) is None or run_state.over(limits, both) is not None
    assert run_state.task_over(limits, spent) is None or run_state.task_over(limits, both) is not None
    assert run_state.over(Budget(), both) is run_state.task_over(Budget(), both) is None
    assert run_state.read_budget(run_state.write_budget(limits)) == limits


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_cots", 1), ("max_cost", "1"), *(("max_cost", each) for each in (True, -1, float("nan")))],
)
def test_what_is_no_budget_is_refused_with_its_name_and_where_to_look(name: str, value: object) -> None:
    with pytest.raises(UsageError) as refused:
        run_state.read_budget({name: value})

    what = "is not a limit; its value was" if name == "max_cots" else "must be 0 or a larger number, not"
    assert refused.value.message == f"{name} {what} {value!r}."
    assert refused.value.hint == "See: harness budget --help"
    with pytest.raises(UsageError, match="inf"):
        run_state.read_budget({"max_tokens": float("inf")})


def test_what_is_no_object_is_refused_in_so_many_words() -> None:
    with pytest.raises(UsageError, match=r"^A budget is an object of limits\.$") as refused:
        run_state.read_budget([])
    assert refused.value.hint == "See: harness budget --help"


def test_a_change_names_some_limits_and_leaves_the_others() -> None:
    changed = run_state.changed(ALL, {"max_cost": 7.5, "max_tokens": 0})

    assert changed == ALL._replace(max_cost=7.5, max_tokens=0)
    with pytest.raises(UsageError, match="max_cots"):
        run_state.changed(ALL, {"max_cots": 1})


# -- what is left of a list: all that can still be done, in no fewer rounds than its dependencies need


def test_in_a_ring_only_what_is_worked_on_can_still_be_done() -> None:
    """Of all else the property below tells."""
    ring = (
        Task("a", status="in_progress", depends_on=("b",)),
        Task("b", status="in_progress", depends_on=("a",)),
    )

    assert stats.of(state(*ring)) == Ahead(2, 2)
    assert stats.of(state(*waiting(a="b", b="a", c="b", d=""))) == Ahead(1, 1)


@pytest.mark.parametrize(
    ("left", "workers", "rounds"), [(Ahead(5, 1), 2, 3), (Ahead(5, 4), 2, 4), (Ahead(0, 0), 3, 0)]
)
def test_the_busiest_worker_has_so_many_rounds(left: Ahead, workers: int, rounds: int) -> None:
    assert left.rounds(workers) == rounds


@given(states())
def test_with_workers_enough_it_takes_as_many_rounds_as_the_chain_is_long(before: State) -> None:
    """Let every task that may run be completed in each round, until nothing may."""
    open_ones = (task._replace(halt=None, unproven=False) for task in before.tasks)
    free = tuple(task for task in open_ones if task.status != "in_progress")
    known = {task.id for task in free}
    remaining = state(
        *(task._replace(depends_on=tuple(known.intersection(task.depends_on))) for task in free)
    )
    left, lost = stats.of(remaining), selection.hopeless(remaining)

    done = rounds = 0
    while ready := {task.id for task in selection.eligible(remaining)} - lost:
        remaining = state(
            *(task._replace(status="completed") if task.id in ready else task for task in remaining.tasks)
        )
        done, rounds = done + len(ready), rounds + 1

    assert left == Ahead(done, rounds)


# -- a worker that is killed is replaced, all night long; only where none would live is it pointless


@pytest.mark.parametrize(
    ("times", "too_many"),
    [
        pytest.param((0, 1, 2), False, id="three in a row"),
        pytest.param((0, 1, 2, 3), True, id="four in a row"),
        pytest.param((90_000, 90_001, 90_002, 90_003), True, id="four late in a night"),
        pytest.param(range(0, 36_000, 300), False, id="deaths of a whole night"),
        pytest.param((50_000, 50_001, 50_002, 10), False, id="a clock that was set back"),
    ],
)
def test_only_deaths_shortly_after_each_other_are_too_many(times: Iterable[float], *, too_many: bool) -> None:
    counted = Deaths()
    for time in times:
        counted = counted.another(time)

    assert counted.too_many is too_many


@pytest.mark.parametrize(
    ("code", "words", "sentence"),
    [
        (-9, "", "killed by signal 9: out of memory?"),
        (-15, "", "killed by signal 15"),
        (0, "", "ended with 0"),
        (1, "", "ended with 1"),
        (1, "KeyError: 'x'", "ended with 1; it printed last: KeyError: 'x'"),
    ],
)
def test_how_it_died_is_always_said(code: int, words: str, sentence: str) -> None:
    assert run_state.describe(code, words) == sentence

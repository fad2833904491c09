"""One list with something of everything in it: each store answers each question alike after each change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from harness_lib import timestamps
from harness_lib.state.answers import Answers
from harness_lib.state.api import Store, Tx
from harness_lib.state.store import Store as FileStore
from harness_lib.system.clock import SYSTEM
from harness_lib.system.place.roots import Root
from harness_lib.task import (
    Attempt,
    Checkpoint,
    Intent,
    KeptPlan,
    Recheck,
    Session,
    SessionConfig,
    State,
    Task,
    Validation,
)
from tests import postgres
from tests.state.memorystore.store import MemoryStore
from tests.state.questions import BEGAN, COMMITS, Hands, answers

SOON, LATER = "2025-07-01T10:05:00Z", "2025-07-01T12:00:00Z"
AT = "2025-07-01T10:00:00Z"
TASKS = (
    Task("task-007", "Done", status="completed", completed_commit=COMMITS[0], attempts=1, notes=("told",)),
    Task("free", " Free  as a BIRD ", priority="P2", depends_on=("task-007",)),
    Task("first", "free as a bird", priority="P0", validation=Validation("true", cwd="sub")),
    Task("again", status="failed", attempts=1, error_log=("[TIMEOUT] x",), failed_at=AT),
    Task("aa", status="failed", attempts=1, failed_at=SOON),
    Task("zz", status="failed", attempts=1),
    Task("gone", status="failed", attempts=3, error_log=("[TEST_FAIL] y",)),
    Task("below", depends_on=("gone",)),
    Task("deeper", depends_on=("below", "free")),
    Task("ring-1", depends_on=("ring-2",)),
    Task("ring-2", depends_on=("ring-1",)),
    Task(
        "mine", status="in_progress", claimed_by="one", lease_expires_at=SOON, checkpoints=(Checkpoint(1, 2),)
    ),
    Task(
        "theirs",
        status="in_progress",
        claimed_by="two",
        lease_expires_at=LATER,
        intent=Intent("commit", AT, commit=COMMITS[1]),
    ),
    Task("merging", status="in_progress", claimed_by="x", intent=Intent("merge", AT, commit=COMMITS[1])),
    Task("halted", halt="CONFIG: no check"),
    Task("said", status="completed", unproven=True),
    Task("said-too", status="in_progress", claimed_by="y", unproven=True),
    Task("tried", attempt_log=(Attempt(1, started_at=SOON, ended_at=LATER),)),
)
RED = Task("r", status="completed", completed_commit=COMMITS[0], recheck=Recheck(COMMITS[0], passed=False))
EXCUSED = RED._replace(recheck=Recheck("a" * 40, passed=False, excuse="not_reproducible"))
ONE = Session(1, "one", "host", finished_attempts=1)
Stores = tuple[Store, Store, Store]


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def stores(root: Root, clock: Hands) -> Stores:
    """Return a store of each kind, each with an empty list."""
    file = FileStore(root, timeout=10, clock=clock)
    assert file.create(State(sessions=())) == ()
    return file, MemoryStore(clock=clock), postgres.begun(root.path, clock)


def both(stores: Stores, act: Callable[[Tx], object]) -> dict[str, object]:
    """Do `act` in each, compare all that can be asked inside and afterwards, and return the answers."""
    inside = []
    for store in stores:
        with store.transaction() as tx:
            act(tx)
            inside.append((answers(tx), tx.changed))
    assert inside[0] == inside[1] == inside[2]
    file, memory, database = (answers(store.ask()) for store in stores)
    assert file == memory == database
    assert _whole(stores[0]) == _whole(stores[1]) == _whole(stores[2])
    return file


def _whole(store: Store) -> State:
    """Return the list as the rules see it, but for what no rule asks about."""
    return store.whole()._replace(created=None)


def edit(name: str, **fields: Any) -> Callable[[Tx], object]:
    def act(tx: Tx) -> None:
        task = tx.task(name)
        assert task is not None
        tx.replace(task._replace(**fields))

    return act


def test_every_change_is_answered_alike(stores: Stores, clock: Hands) -> None:
    answered = both(stores, lambda tx: tx.add(TASKS))

    counts = stores[0].ask().counts()
    assert (counts.total, counts.completed, counts.failed, counts.attempts) == (18, 1, 4, 7)
    assert answered["highest_number"] == 7
    clock.move(600)
    both(stores, lambda _tx: None)
    assert _ids(stores[0].ask().expired()) == ["mine"]
    for change in (
        edit("task-007", unproven=True),
        edit("free", status="completed", completed_commit=COMMITS[1]),
        edit("free", status="pending", completed_commit=None),
        edit("mine", status="pending", claimed_by=None, title="Free as a bird"),
        edit("again", status="pending", intent=Intent("commit", AT, commit=COMMITS[0])),
        edit("halted", halt=None),
        edit("theirs", halt="ENV_SETUP: no make"),
        edit("gone", status="completed", halt="x"),
        edit("deeper", depends_on=("free",)),
        edit("ring-2", depends_on=()),
        lambda tx: tx.remove("ring-1"),
        lambda tx: tx.forget_attempts(2),
        lambda tx: tx.forget_attempts(3),
        lambda tx: tx.configure(SessionConfig("concurrent", 1, 2)),
        lambda tx: tx.keep_plan("docs/plan.md", "Goal: x"),
        lambda tx: tx.keep_plan("docs/plan.md", "Goal: y"),
        lambda tx: tx.keep_plan("docs/gone.md", "z"),
        lambda tx: tx.keep_plan("docs/gone.md", ""),
        lambda tx: tx.propose(Task("p-1", "One", attempts=2)),
        lambda tx: tx.propose(Task("p-2", "Two")),
        lambda tx: tx.drop_proposal("p-1"),
        lambda tx: tx.drop_proposal("p-nobody"),
        lambda tx: tx.add_session(ONE),
        lambda tx: tx.add_session(Session(2, "one#2", "host")),
        lambda tx: tx.count_session(2),
        lambda tx: tx.count_session(1),
        lambda tx: tx.replace_session(ONE._replace(halt="ENV_SETUP: no make")),
        lambda tx: tx.replace_session(Session(3, "two", "host"), 2),
        lambda tx: tx.remove_session(1),
        lambda tx: tx.note_session(),
        lambda tx: tx.rewrite(),
    ):
        clock.move(1)
        both(stores, change)
    last = stores[0].ask()
    assert last.session_count == 2
    assert last.last_session == timestamps.render(clock.at - timedelta(seconds=1))
    assert stores[0].whole().plans == (KeptPlan("docs/plan.md", "Goal: y"),)
    assert _ids(last.proposals()) == ["p-2"]
    assert [each.number for each in last.sessions()] == [3]
    assert last.counts().attempts == 12


def test_a_list_that_is_started_over_is_answered_for_alike(stores: Stores, clock: Hands) -> None:
    """Whatever it held before, and again when it is begun in the very change that empties it."""

    def over(tx: Tx) -> None:
        tx.start_over()

    def over_and_on(tx: Tx) -> None:
        tx.start_over()
        tx.add([Task("new"), Task("next", depends_on=("new",))])
        tx.add_session(Session(1, "two", "host"))
        tx.propose(Task("p-3", "Three"))

    fill: list[Callable[[Tx], object]] = [
        lambda tx: tx.add(TASKS[:7]),
        lambda tx: tx.configure(SessionConfig("concurrent", 1, 2)),
        lambda tx: tx.propose(Task("p-1", "One", attempts=2)),
        lambda tx: tx.add_session(ONE),
        lambda tx: tx.count_session(4),
        lambda tx: tx.note_session(),
        lambda tx: tx.forget_attempts(3),
    ]
    for change in (*fill, over, *fill, over_and_on, over, *fill):
        clock.move(1)
        both(stores, change)


def test_failures_are_tried_again_in_the_order_in_which_they_failed(stores: Stores) -> None:
    moments = {"a": LATER, "b": AT, "c": None, "d": SOON, "e": SOON}
    tasks = [Task(name, status="failed", attempts=1, failed_at=at) for name, at in moments.items()]
    tasks[3] = tasks[3]._replace(priority="P0")
    # When a task that is pending again once failed plays no part.
    tasks += [Task("q", failed_at=AT), Task("p", failed_at=LATER)]
    both(stores, lambda tx: tx.add(tasks))
    order = []
    while (ready := stores[0].ask().next_ready()) is not None:
        order.append(ready.id)
        both(stores, edit(ready.id, status="completed"))
    assert order == ["p", "q", "d", "c", "b", "e", "a"]


def test_what_stops_the_work_is_said_alike(stores: Stores) -> None:
    names = ("no_work", "work_remains", "awaits_user", "holds_agents")
    halted, working = Task("d", halt="x"), Task("c", status="in_progress", claimed_by="one")
    gone = Task("e", status="failed", attempts=3)
    for tasks, *said in (
        ((), "done", False, False, False),
        ((Task("a", status="completed"),), "done", False, False, False),
        ((Task("b", status="completed", unproven=True),), None, True, False, True),
        ((working,), "waiting", True, False, True),
        ((halted,), "waiting", True, True, True),
        ((gone, Task("f", depends_on=("e",))), "blocked", True, False, True),
        ((gone,), "blocked", False, False, False),
        ((RED,), "recheck_failed", False, False, True),
        ((EXCUSED,), "done", False, False, False),
        ((halted, working), "waiting", True, False, True),
        ((RED, gone), "recheck_failed", False, False, True),
        ((RED, working), "waiting", True, False, True),
    ):
        both(stores, _empty)
        answered = both(stores, lambda tx, tasks=tasks: tx.add(tasks))  # type: ignore[misc]
        assert [answered[name] for name in names] == said, tasks


@pytest.mark.parametrize(
    ("limit", "used", "spent"),
    [(20, 19, False), (20, 20, True), (20, 21, True), (1, 0, False), (1, 1, True), (0, 1000, False)],
)
def test_a_limit_is_reached_when_it_is_used_and_0_is_no_limit(limit: int, used: int, *, spent: bool) -> None:
    config = SessionConfig(max_tasks_per_session=limit, max_sessions=limit)
    answers = Answers(State(session_config=config, session_count=used), SYSTEM.now())
    session = ONE._replace(finished_attempts=used)

    assert answers.session_spent(session) == ("max_tasks_per_session" if spent else None)
    assert answers.sessions_spent() == ("max_sessions" if spent else None)


def test_a_final_check_holds_agents(stores: Stores) -> None:
    both(stores, lambda tx: tx.add([Task("a", status="completed")]))
    assert not both(stores, lambda tx: tx.add_session(ONE))["holds_agents"]
    checks = ONE._replace(final_check=True)
    assert both(stores, lambda tx: tx.replace_session(checks))["holds_agents"]


def test_questions_about_a_part_are_answered_alike(stores: Stores) -> None:
    lost = Task("lost", status="failed", error_log=("[DEPENDENCY] x",), depends_on=("gone",))
    both(stores, lambda tx: tx.add([*TASKS, lost, RED]))
    both(stores, edit("task-007", intent=Intent("commit", AT, commit=COMMITS[0])))
    for store in stores:
        asked = store.ask_now()
        assert _ids(asked.search("in_progress", limit=1)) == ["mine"]
        assert _ids(asked.search("completed", "in_progress", after="merging")) == ["said", "said-too", "r"]
        assert asked.search(after="nobody") == ()
        assert _ids(asked.interesting(2)) == ["merging", "mine"]
        assert _ids(asked.provable()) == ["said"]
        assert _ids(asked.worked_on_since(BEGAN)) == ["tried"]
        assert [asked.made(commit) for commit in COMMITS] == [("task-007", "r"), ("theirs",)]
        assert asked.titled("FREE as a Bird") == ("free", "first")
        assert asked.rings() == dict.fromkeys(("ring-1", "ring-2"), "ring-1 -> ring-2 -> ring-1")
        assert asked.cycles() == (("ring-1", "ring-2", "ring-1"),)
        assert [each.task_id for each in asked.unreachable()] == ["ring-1", "ring-2", "below", "deeper"]
        assert asked.blocked_through("gone") == ("lost",)
        rows = [("task-007", None, None, None), ("free", None, None, None), ("first", "true", "sub", None)]
        assert list(asked.commands()[:3]) == rows
        assert asked.ahead() == (12, 1)
        assert asked.plan_header("nobody's") == ""
        assert tuple(asked.warnings) == ()


def _ids(tasks: tuple[Task, ...]) -> list[str]:
    return [task.id for task in tasks]


def _empty(tx: Tx) -> None:
    for task in tx.search():
        tx.remove(task.id)

"""A change that the server ends in favour of another one is made again, and nobody types it again."""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg
import pytest

from harness_lib.errors import HeldError
from harness_lib.state import api
from harness_lib.state.pgstore.store import PgStore
from harness_lib.task import Task
from tests.state.clock import Sleeper
from tests.state.pgstore.beside import claim, exact, finish, there, waiting
from tests.state.pgstore.machines import Shared

# Refuse as many events as the sequence has left to give: it counts on although the change is undone.
REFUSES = """
create sequence harness.given_up maxvalue {times} cycle;
create function harness.give_up() returns trigger language plpgsql as $$ begin
  if nextval('harness.given_up') < {times} then
    raise exception 'for the sake of another' using errcode = '{code}';
  end if;
  return null;
end $$;
create constraint trigger give_up after insert on harness.event {when}
  for each row execute function harness.give_up();
"""
AT_ONCE, AT_THE_END = "", "deferrable initially deferred"
pytestmark = pytest.mark.usefixtures("apart")


class Rival:
    """Another connection, which never gives up: of two that wait for each other, the other one must."""

    def __init__(self, shared: Shared, has: str, wants: str) -> None:
        self._shared, self._wants = shared, wants
        self._conn = psycopg.connect(shared.server)
        self._conn.execute("set deadlock_timeout = '1h'")
        self._lock(has)
        self._thread = threading.Thread(target=self._take, daemon=True)

    def _lock(self, task_id: str) -> None:
        self._conn.execute("select from harness.task where id = %s for update", (task_id,))

    def _take(self) -> None:
        with self._conn:
            self._lock(self._wants)

    def waits(self) -> None:
        """Let it want what it lacks, and return once it waits for that."""
        self._thread.start()
        while not waiting(self._shared):
            pass

    def ended(self) -> None:
        self._thread.join()


def with_dependents(shared: Shared) -> PgStore:
    store = shared.with_tasks(2)
    with store.transaction() as tx:
        tx.add([Task("task-003", "Next", depends_on=("task-001",))])
        claim(tx, "one")
    return store


def lines(store: PgStore, text: str) -> int:
    return sum(text in line for line in store.log_tail())


def finish_first(tx: api.Tx) -> None:
    finish(tx, "task-001")


def add_one(tx: api.Tx) -> None:
    tx.add([Task("task-004", "Later", depends_on=("task-003",))])


@pytest.mark.parametrize("kind", ["tasks", "list"])
def test_two_that_wait_for_each_other_are_both_made(shared: Shared, kind: api.Kind) -> None:
    store = with_dependents(shared)
    rival = Rival(shared, has="task-003", wants="task-001")
    with store.transaction(kind) as tx:
        tx.replace(there(tx, "task-001"))
        # Asking writes what was changed so far.
        tx.counts()
        rival.waits()
        finish(tx, "task-001")
        tx.log("WARN", "was made", 0)
    rival.ended()
    assert [task.id for task in store.ask().claimable()] == ["task-002", "task-003"]
    assert lines(store, "was made") == 1
    assert exact(shared)


def test_a_question_that_waits_in_a_circle_is_asked_again(shared: Shared) -> None:
    store = with_dependents(shared)
    rival = Rival(shared, has="task-002", wants="task-001")
    with store.transaction("tasks") as tx:
        finish(tx, "task-001")
        rival.waits()
        assert tx.task("task-002") is not None
        tx.log("WARN", "was made", 0)
    rival.ended()
    assert store.ask().counts().completed == 1
    assert exact(shared)


@pytest.mark.parametrize(
    ("code", "when", "kind", "act"),
    [("40P01", AT_ONCE, "list", add_one), ("40001", AT_THE_END, "tasks", finish_first)],
)
def test_a_change_that_the_server_gives_up_is_made_again(
    shared: Shared, code: str, when: str, kind: api.Kind, act: Callable[[api.Tx], None]
) -> None:
    store = with_dependents(shared)
    shared.sql(REFUSES.format(times=3, code=code, when=when))
    store = shared.machine("first", clock=Sleeper())
    with store.transaction(kind) as tx:
        act(tx)
        tx.log("WARN", "was made", 0)
    assert lines(store, "was made") == 1
    counts = store.ask().counts()
    assert (counts.completed, counts.total) == ((1, 3) if kind == "tasks" else (0, 4))
    assert exact(shared)


def test_a_change_that_is_always_given_up_says_what_to_type(shared: Shared) -> None:
    with_dependents(shared)
    shared.sql(REFUSES.format(times=1_000_000, code="40001", when=AT_ONCE))
    clock = Sleeper()
    store = shared.machine("first", clock=clock)
    with pytest.raises(HeldError, match="so nothing was changed") as caught, store.transaction() as tx:
        add_one(tx)
    assert caught.value.hint == "Type the command again."
    assert 25 < clock.slept <= 30
    assert store.ask().counts().total == 3
    shared.sql("drop trigger give_up on harness.event")
    with store.transaction() as tx:
        add_one(tx)
    assert store.warnings == ()
    assert store.ask().counts().total == 4


def refused_once(shared: Shared, code: str, act: Callable[[api.Tx], object]) -> PgStore:
    """Return a store whose next change is given up once; before it is made again, another machine does `act`.

    Between the two tries nothing is locked.
    """
    with_dependents(shared)
    other = shared.machine("second")
    shared.sql(REFUSES.format(times=2, code=code, when=AT_ONCE))

    class Busy(Sleeper):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            shared.sql("drop trigger give_up on harness.event")
            with other.transaction("tasks") as tx:
                act(tx)

    return shared.machine("first", clock=Busy())


@pytest.mark.parametrize("kind", ["tasks", "list"])
def test_what_others_have_changed_meanwhile_is_not_written_over(shared: Shared, kind: api.Kind) -> None:
    """What the change was decided by may be another then."""
    store = refused_once(shared, "40001", lambda tx: finish(tx, "task-001"))

    def note() -> None:
        with store.transaction(kind) as tx:
            assert tx.task("task-001") is not None
            tx.log("WARN", "seen in progress", 0)

    with pytest.raises(HeldError, match="meanwhile"):
        note()
    assert lines(store, "seen in progress") == 0


def test_two_sessions_that_are_opened_again_have_two_numbers(shared: Shared) -> None:
    """The number that was taken first may be another's by the second try."""
    store = refused_once(shared, "40P01", lambda tx: tx.count_session(tx.session_count + 1))
    with pytest.raises(HeldError, match="meanwhile"), store.transaction("tasks") as tx:
        tx.count_session(tx.session_count + 1)
    assert store.ask().session_count == 1

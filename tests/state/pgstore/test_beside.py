"""Changes of tasks go on beside each other; whatever else changes has the list for itself.

Another change comes in the middle of one, so that each interleaving is the same each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise

import pytest

from harness_lib.core import lifecycle
from harness_lib.errors import HeldError
from harness_lib.rules import transitions
from harness_lib.state import api
from harness_lib.state.pgstore.store import PgStore
from harness_lib.task import Session, Task
from tests.state.clock import Sleeper
from tests.state.pgstore.beside import claim, claimed, exact, finish, finished, waiting
from tests.state.pgstore.machines import Shared
from tests.waiting import until


def test_two_claims_at_once_take_two_tasks(shared: Shared) -> None:
    one, two = shared.with_tasks(3), shared.machine("second", timeout=0.5)
    with one.transaction("tasks") as first:
        mine = claim(first, "one")
        with two.transaction("tasks") as second:
            theirs = claim(second, "two")
    assert (mine.id, theirs.id) == ("task-001", "task-002")
    assert [task.claimed_by for task in one.ask().in_progress()] == ["one", "two"]
    assert exact(shared)


def test_a_task_that_somebody_changes_is_waited_for(shared: Shared) -> None:
    """What was read without a lock is compared when it is written."""
    one, two = shared.with_tasks(2), shared.machine("second", timeout=0.3)
    with one.transaction("tasks") as first:
        claim(first, "one")
        with pytest.raises(HeldError, match="Another machine"), two.transaction("tasks") as second:
            second.task("task-001")

    def write_what_was_seen() -> None:
        with two.transaction("tasks") as second:
            (seen,) = second.in_progress()
            finished(one, "task-001")
            second.replace(seen._replace(title="Late"))

    with pytest.raises(HeldError, match="has changed task-001 meanwhile"):
        write_what_was_seen()
    (task,) = one.ask().tasks(["task-001"])
    assert (task.status, task.title) == ("completed", "Task 1")


def in_a_thread(act: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def waits_or_ends(shared: Shared, thread: threading.Thread) -> None:
    """Return once the change of `thread` waits for the list, or is made."""
    while thread.is_alive() and not shared.sql(
        "select from pg_locks where locktype = 'advisory' and not granted"
    ):
        pass


def test_a_task_that_is_added_while_another_is_finished_does_not_wait_for_ever(shared: Shared) -> None:
    """The two may not see each other: the one counts what it waits for, the other tells who waits."""
    one, two = shared.with_tasks(1), shared.machine("second")
    claimed(one, "one")

    def add() -> None:
        with two.transaction() as tx:
            tx.add([Task("task-002", "Next", depends_on=("task-001",))])

    with one.transaction("tasks") as tx:
        finish(tx, "task-001")
        tx.counts()
        thread = in_a_thread(add)
        waits_or_ends(shared, thread)
    thread.join()
    assert [task.id for task in shared.machine("third").ask().claimable()] == ["task-002"]
    assert exact(shared)


def test_a_session_that_ends_ends_no_claim_that_has_passed_to_another_worker_meanwhile(
    shared: Shared,
) -> None:
    one, two = shared.with_tasks(1), shared.machine("second")
    claimed(one, "one")

    def end() -> None:
        with one.transaction("tasks") as tx:
            lifecycle.close(tx, Session(1, "one", "host"))

    with two.transaction("tasks") as tx:
        (held,) = tx.in_progress()
        taken = transitions.resume(held, worker="two", now=tx.now, worktree=None, lease_seconds=600)
        tx.replace(taken)
        thread = in_a_thread(end)
        until("the end waits", lambda: waiting(shared) > 0)
    thread.join()
    assert [task.lease_expires_at for task in one.ask().in_progress()] == [taken.lease_expires_at]


def test_two_that_finish_at_once_free_what_waits_for_both(shared: Shared) -> None:
    one, two = shared.with_tasks(2), shared.machine("second")
    with one.transaction() as tx:
        claim(tx, "one")
        claim(tx, "two")
        tx.add([Task(f"task-{n:03}", "Next", depends_on=("task-001", "task-002")) for n in (3, 4)])

    with one.transaction("tasks") as tx:
        finish(tx, "task-001")
        thread = in_a_thread(lambda: finished(two, "task-002"))
        tx.counts()
    thread.join()
    assert [task.id for task in one.ask().claimable()] == ["task-003", "task-004"]
    assert exact(shared)


def test_the_files_miss_no_line_of_a_change_that_ends_later_than_one_with_a_higher_number(
    shared: Shared,
) -> None:
    one, two, three = shared.with_tasks(), shared.machine("second"), shared.machine("third")
    with one.transaction("tasks") as first:
        first.log("WARN", "begun first", 0)
        first.publish()
        first.lines.clear()
        with two.transaction("tasks") as second:
            second.log("WARN", "begun second", 0)
        stamp = three.stamp()
        assert [line.rpartition(" ")[2] for line in three.log_tail()] == ["test", "second"]
    assert [line.rpartition(" ")[2] for line in three.log_tail()][:3] == ["test", "second", "first"]
    three._look_at = float("-inf")
    assert three.stamp() != stamp


def test_machines_look_for_changes_every_two_seconds_and_not_all_at_once(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.with_tasks()
    clock = Sleeper()
    store = shared.machine("second", clock=clock)
    looks: list[float] = []
    monkeypatch.setattr(store, "ask", lambda: looks.append(clock.slept))
    while len(looks) < 100:
        store.stamp()
        clock.sleep(0.01)
    waits = [later - earlier for earlier, later in pairwise(looks)]
    assert 1 <= min(waits) < 1.5
    assert 2.5 < max(waits) <= 3.02


@pytest.mark.parametrize("act", [lambda tx: tx.add([Task("task-009")]), lambda tx: tx.remove("task-001")])
def test_a_change_of_tasks_changes_nothing_else(shared: Shared, act: Callable[[api.Tx], None]) -> None:
    store: PgStore = shared.with_tasks()
    with pytest.raises(AssertionError, match="BUG: a narrow change"), store.transaction("tasks") as tx:
        act(tx)
    assert len(store.ask().search()) == 2

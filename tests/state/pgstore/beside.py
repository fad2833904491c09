"""A claim and an outcome as changes of tasks, and whether what the database counts is exact."""

from __future__ import annotations

from harness_lib.rules import transitions
from harness_lib.state import api
from harness_lib.state.pgstore.store import PgStore
from harness_lib.task import Task
from tests.state.pgstore.machines import Shared


def claim(tx: api.Tx, worker: str) -> Task:
    task = tx.next_ready()
    assert task is not None
    claimed = transitions.claim(
        task, worker=worker, now=tx.now, base=None, gate=None, worktree=None, lease_seconds=60
    )
    tx.replace(claimed)
    return claimed


def finish(tx: api.Tx, task_id: str) -> None:
    begun = transitions.begin_commit(there(tx, task_id), now=tx.now, head=None, commit="a" * 40)
    tx.replace(transitions.complete(begun, now=tx.now))


def there(tx: api.Tx, task_id: str) -> Task:
    task = tx.task(task_id)
    assert task is not None
    return task


def claimed(store: PgStore, worker: str) -> Task:
    with store.transaction("tasks") as tx:
        return claim(tx, worker)


def finished(store: PgStore, task_id: str) -> None:
    with store.transaction("tasks") as tx:
        finish(tx, task_id)


def exact(shared: Shared) -> bool:
    """Return whether the tally and what each task waits for are what a fresh count finds."""
    tally = shared.sql(
        "select sum(total), sum(completed), sum(in_progress), sum(pending), sum(blocked), sum(permanent) "
        "from harness.tally join harness.list on key = list where name = %s",
        shared.name,
    )
    fresh = shared.sql(
        "select count(*), sum(done::int), sum((status = 'in_progress')::int), "
        "sum((status = 'pending')::int), sum((status = 'pending' and lost > 0)::int), sum(dead::int) "
        "from harness.task join harness.list on list.key = list where name = %s",
        shared.name,
    )
    wrong = shared.sql(
        "select task.id from harness.task join harness.list on list.key = list where name = %s "
        "and waits <> (select count(*) from harness.dep left join harness.task as other "
        "on other.list = dep.list and other.id = dep.needs where dep.list = task.list "
        "and dep.task = task.id and other.done is not true)",
        shared.name,
    )
    return tally == fresh and not wrong


def waiting(shared: Shared) -> int:
    """Return how many wait for a lock in the database."""
    query = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    return len(shared.sql(query))

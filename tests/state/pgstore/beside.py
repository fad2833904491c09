"""A claim and an outcome as changes of tasks, and whether what the database counts is exact."""

from __future__ import annotations

import psycopg

from harness_lib.rules import transitions
from harness_lib.state import api
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
    task = tx.task(task_id)
    assert task is not None
    begun = transitions.begin_commit(task, now=tx.now, head=None, commit="a" * 40)
    tx.replace(transitions.complete(begun, now=tx.now))


def exact(shared: Shared) -> bool:
    """Return whether the tally and what each task waits for are what a fresh count finds."""
    with psycopg.connect(shared.server) as conn:
        tally = conn.execute(
            "select sum(total), sum(completed), sum(in_progress), sum(pending), sum(blocked), sum(permanent) "
            "from harness.tally join harness.list on key = list where name = %s",
            (shared.name,),
        ).fetchone()
        fresh = conn.execute(
            "select count(*), sum(done::int), sum((status = 'in_progress')::int), "
            "sum((status = 'pending')::int), sum((status = 'pending' and lost > 0)::int), sum(dead::int) "
            "from harness.task join harness.list on list.key = list where name = %s",
            (shared.name,),
        ).fetchone()
        wrong = conn.execute(
            "select task.id from harness.task join harness.list on list.key = list where name = %s "
            "and waits <> (select count(*) from harness.dep left join harness.task as other "
            "on other.list = dep.list and other.id = dep.needs where dep.list = task.list "
            "and dep.task = task.id and other.done is not true)",
            (shared.name,),
        ).fetchall()
    return tally == fresh and not wrong


def is_waited_for(server: str) -> bool:
    """Return whether somebody waits for a lock in the database at `server`."""
    return waiting(server) > 0


def waiting(server: str) -> int:
    """Return how many wait for a lock in the database at `server`."""
    query = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with psycopg.connect(server) as conn:
        return len(conn.execute(query).fetchall())

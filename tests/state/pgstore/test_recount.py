"""`harness store check` recounts what rows repeat: each column that is damaged is named, and put right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from harness_lib.state.pgstore import checking, rows
from harness_lib.state.pgstore.checking import Found
from harness_lib.state.pgstore.lists import TALLY
from harness_lib.state.pgstore.store import PgStore
from harness_lib.task import OnFailure, Task
from tests.state.pgstore.beside import claim, exact, finish, there
from tests.state.pgstore.machines import Shared

OTHER = {
    "id": "'other'",
    "sort_key": "'\\x00'",
    "status": "'failed'",
    "since": "0",
    "completed_at": "'2020'",
    "worker": "'nobody'",
    "lease": "now()",
    "proof": "7",
}


@contextmanager
def by_hand(shared: Shared) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection on which no trigger puts anything right."""
    with psycopg.connect(shared.server) as conn:
        conn.execute("set local session_replication_role = replica")
        yield conn


def in_work(shared: Shared) -> PgStore:
    """Return the store of a list with a task of each kind."""
    store = shared.with_tasks(3)
    with store.transaction() as tx:
        claim(tx, "one")
        claim(tx, "two")
        finish(tx, "task-001")
        dead = Task("task-004", "Lost", "failed", attempts=3, failed_at="2025-07-01T10:00:00Z")
        needs = Task("task-005", "Waits \0", depends_on=("task-001", "task-002", "task-004"))
        tx.add([dead, needs, Task("task-006", on_failure=OnFailure("true"))])
    return store


def key_of(store: PgStore) -> int:
    return store.moments.looked().version.key


def other(column: str) -> str:
    if column in OTHER:
        return OTHER[column]
    return f"not {column}" if rows.TYPES.get(column) == "boolean" else f"{column} + 1"


@pytest.mark.parametrize(
    "column", ["id", "waits", "lost", *(each for each in rows.TYPES if each not in rows.TEXTS)]
)
def test_a_column_that_is_damaged_is_named_and_put_right(shared: Shared, column: str) -> None:
    store = in_work(shared)
    before = store.whole().tasks
    with by_hand(shared) as conn:
        conn.execute(
            f"update harness.task set {column} = {other(column)} where list = {key_of(store)} "
            "and id = 'task-002'".encode()
        )
    found = checking.check(store, repair=False)
    assert column in found[0]
    assert "task-002" in found[0]
    assert checking.check(store, repair=True) == []
    assert checking.check(store, repair=False) == []
    assert f"WARN put right: {found[0]}" in "\n".join(store.log_tail())
    # The higher one is kept, as a fence never falls.
    after = [task._replace(fence=0) for task in store.whole().tasks]
    assert after == [task._replace(fence=0) for task in before]
    assert exact(shared)


@pytest.mark.parametrize("column", TALLY)
def test_a_tally_that_is_damaged_is_named_and_put_right(shared: Shared, column: str) -> None:
    store = in_work(shared)
    counts = store.ask().counts()
    with by_hand(shared) as conn:
        conn.execute(
            f"update harness.tally set {column} = {column} + 1 where list = %s".encode(), (key_of(store),)
        )
    assert checking.check(store, repair=False) == [f"the tally is wrong: {column}"]
    assert checking.check(store, repair=True) == []
    assert store.ask().counts() == counts


def test_edges_rings_and_what_was_told_to_others_are_put_right(shared: Shared) -> None:
    store = in_work(shared)
    key = key_of(store)
    with by_hand(shared) as conn:
        conn.execute("delete from harness.dep where list = %s and needs = 'task-002'", (key,))
    # With the triggers: those that need it have been told.
    shared.sql("update harness.task set done = not done where list = %s and id = 'task-001'", key)
    assert checking.check(store, repair=False) == [
        "'task-001': its row is wrong: done",
        "'task-005': its row is wrong: edges, waits",
        "the tally is wrong: completed",
    ]
    assert checking.check(store, repair=True) == []
    assert store.ask().dependents("task-002") == ("task-005",)
    with store.transaction() as tx:
        tx.replace(there(tx, "task-001")._replace(depends_on=("task-005",)))
    with by_hand(shared) as conn:
        conn.execute("update harness.list set cyclic = false where key = %s", (key,))
    (ring,) = checking.check(store, repair=False)
    assert ring.startswith("a ring is not noticed: ")
    assert checking.check(store, repair=True) == []
    assert store.ask().rings() or store.moments.looked().state


def test_a_document_that_cannot_be_read_is_named_and_left_alone(shared: Shared) -> None:
    store = in_work(shared)
    for text in ("{", "[]", '{"status": "odd"}'):
        with by_hand(shared) as conn:
            conn.execute(
                "update harness.task set document = %s, waits = 7 where list = %s and id = 'task-002'",
                (text, key_of(store)),
            )
        for repair in (False, True):
            found = checking.check(store, repair=repair)
            assert found[0].startswith("task-002: its document cannot be read: ")
    assert shared.sql("select waits from harness.task where id = 'task-002' and waits = 7")


def test_a_sound_list_finds_nothing_while_others_work(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compared was read at one moment, whatever is committed between two questions."""
    store, other_machine = in_work(shared), shared.machine("second")
    look = store.moments.looked()
    count = Found._count

    def later(self: Found) -> None:
        if not done:
            done.append(True)
            with other_machine.transaction("tasks") as tx:
                finish(tx, "task-002")
                claim(tx, "three")
        count(self)

    done: list[bool] = []
    monkeypatch.setattr(Found, "_count", later)
    assert Found(look.rows).problems == []
    assert done
    with other_machine.transaction("tasks") as tx:
        claim(tx, "four")
        tx.counts()
        assert checking.check(store, repair=False) == []
    assert checking.check(store, repair=True) == []
    assert not [line for line in store.log_tail() if "put right" in line]

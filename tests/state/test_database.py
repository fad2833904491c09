"""What the store in a database says of itself, and that it leaves nothing open."""

from __future__ import annotations

import gc
import os
import re
import sys
from pathlib import Path

import pytest

from harness_lib import __version__
from harness_lib.errors import HeldError
from harness_lib.state.codec import ContractError
from harness_lib.state.pgstore import checking, connecting, rows
from harness_lib.state.pgstore.store import PgStore
from harness_lib.task import SessionConfig, Task
from tests import postgres
from tests.state.questions import Hands


@pytest.fixture
def store(tmp_path: Path) -> PgStore:
    made = postgres.store(tmp_path.resolve(), Hands())
    assert isinstance(made, PgStore)
    made.begin(SessionConfig(), "Begun for a test")
    return made


def test_each_machine_is_known_by_its_version(store: PgStore) -> None:
    with store.transaction() as tx:
        tx.add([Task("task-001")])
    machines = [said for name, said in checking.facts(store) if name.startswith("machine ")]
    assert len(machines) == 1
    assert re.fullmatch(rf"last change .+ with harness {re.escape(__version__)}", machines[0])


@pytest.mark.skipif(sys.platform == "darwin", reason="content is synced by F_FULLFSYNC there")
def test_a_power_cut_leaves_no_part_of_where_the_list_is(
    store: PgStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    with store.transaction() as tx:
        tx.add([Task("task-001")])
    assert store.root.link.stat().st_ino in synced


def test_a_list_whose_link_is_gone_by_the_end_of_a_change_is_left_alone(store: PgStore) -> None:
    with store.transaction():
        store.root.link.unlink()
    assert not store.root.link.exists()


def test_a_task_that_breaks_the_contract_is_named(store: PgStore) -> None:
    with pytest.raises(ContractError, match=r"task 'task-001'\.max_attempts"), store.transaction() as tx:
        tx.add([Task("task-001", max_attempts=0)])


def test_an_administrator_sees_whose_connections_they_are(store: PgStore) -> None:
    with connecting.connect(store.link.url) as conn:
        assert conn.execute("show application_name").fetchone() == ("harness",)


def test_what_is_kept_open_ends_with_the_store(tmp_path: Path) -> None:
    made = postgres.store(tmp_path.resolve(), Hands())
    assert isinstance(made, PgStore)
    made.begin(SessionConfig(), "Begun for a test")
    made.ask()
    gc.collect()
    (kept, *_), *_ = made.moments._idle
    assert not kept.closed

    del made
    gc.collect()

    assert kept.closed


def test_a_turn_is_left_by_whoever_has_it(store: PgStore) -> None:
    taken = (("refs/heads/main", "me"),)
    assert store.take_turn("refs/heads/main", "me", 60) is not None
    store.leave_turn("refs/heads/main", "another")
    assert store.turns() == taken
    store.leave_turn("refs/heads/main", "me")
    assert store.turns() == ()


def test_a_task_that_somebody_else_has_changed_meanwhile_stays_as_it_is(store: PgStore) -> None:
    task = Task("task-001", "One")
    with store.transaction() as tx:
        tx.add([task])
    with connecting.connect(store.link.url) as conn:
        query = "select list, ver from harness.task join harness.list on key = list where name = %s"
        row = conn.execute(query, (store.link.name,)).fetchone()
        assert row is not None
        key, ver = row

        with pytest.raises(HeldError, match="Another machine has changed task-001 meanwhile"):
            rows.Rows(conn, key).change([(task._replace(title="Two"), ver - 1)])

    assert store.ask().search() == (task,)

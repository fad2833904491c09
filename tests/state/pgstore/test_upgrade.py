"""Tables of an earlier version are brought up to date with nothing lost; until then nothing is changed."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.state.pgstore import connecting, migrations
from harness_lib.state.pgstore.connecting import SCHEMA
from harness_lib.state.pgstore.store import PgStore
from harness_lib.task import Task
from tests.state.pgstore.machines import Shared
from tests.state.pgstore.people import People

NEXT = SCHEMA + 1
# What a later harness might bring: a column that is filled from what is there.
LATER = f"""
alter table harness.task add column later text;
update harness.task set later = id;
update harness.about set version = {NEXT};
"""


@pytest.fixture
def update(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes a harness of this one that has one more numbered file."""
    text_of = migrations.text_of

    def act() -> None:
        monkeypatch.setattr(connecting, "SCHEMA", NEXT)
        monkeypatch.setattr(
            migrations, "text_of", lambda version: LATER if version == NEXT else text_of(version)
        )

    return act


def add(store: PgStore, name: str) -> None:
    with store.transaction() as tx:
        tx.add([Task(name)])


def test_a_list_in_work_is_brought_up_to_date(shared: Shared, update: Callable[[], None]) -> None:
    with shared.apart():
        store = shared.with_tasks()
        before, log = store.whole(), store.log_tail()
        update()
        acts = (store.ask, lambda: add(store, "task-003"), lambda: migrations.set_up(shared.server))
        for act in acts:
            with pytest.raises(EnvSetupError, match=f"format {SCHEMA}.* format {NEXT}") as caught:
                act()
            assert "harness store upgrade" in str(caught.value.hint)
        assert migrations.upgrade(shared.server) == SCHEMA
        assert migrations.upgrade(shared.server) == NEXT

        assert (store.whole(), store.log_tail()) == (before, log)
        with psycopg.connect(shared.server) as conn:
            filled = conn.execute("select bool_and(later = id), count(*) from harness.task").fetchone()
        assert filled == (True, 2)
        add(store, "task-003")
        assert store.ask().counts().total == 3


def test_new_tables_are_made_by_all_files_in_turn(shared: Shared, update: Callable[[], None]) -> None:
    update()
    with shared.apart():
        assert migrations.present(shared.server) == NEXT
        assert migrations.texts() == f"{migrations.text_of(1)}\n{LATER}"
        shared.with_tasks()


def test_an_upgrade_keeps_the_roles(people: People, update: Callable[[], None]) -> None:
    update()
    assert migrations.upgrade(people.shared.server) == SCHEMA
    store = people.machine("worker")
    with psycopg.connect(store.link.url) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("update harness.task set later = 'x'")


def test_an_upgrade_that_fails_changes_nothing(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, update: Callable[[], None]
) -> None:
    with shared.apart():
        store = shared.with_tasks()
        before = store.whole()
        with monkeypatch.context() as patch:
            patch.setattr(connecting, "SCHEMA", NEXT)
            patch.setattr(migrations, "text_of", lambda _: LATER + "select no_such_column;")
            with pytest.raises(EnvSetupError):
                migrations.upgrade(shared.server)
        assert migrations.present(shared.server) == SCHEMA
        assert store.whole() == before
        update()
        assert migrations.upgrade(shared.server) == SCHEMA


def test_tables_that_lack_a_column_are_named_as_older(shared: Shared) -> None:
    """The first question reads more than the format, and fails before that can be compared."""
    with shared.apart():
        store = shared.with_tasks()
        with psycopg.connect(shared.server, autocommit=True) as conn:
            conn.execute("alter table harness.about drop column reads")
        with pytest.raises(EnvSetupError, match="an older format") as caught:
            store.ask()
        assert "harness store upgrade" in str(caught.value.hint)


def test_what_is_only_shown_changes_nothing(shared: Shared, update: Callable[[], None]) -> None:
    with shared.apart():
        update()
        with psycopg.connect(shared.server, autocommit=True) as conn:
            conn.execute(f"update harness.about set version = {SCHEMA}".encode())
        assert migrations.texts(migrations.present(shared.server)) == LATER
        assert migrations.present(shared.server) == SCHEMA

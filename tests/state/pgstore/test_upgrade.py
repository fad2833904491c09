"""Tables of an earlier version are brought up to date with nothing lost; until then nothing is changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from harness_lib import __version__
from harness_lib.errors import AwayError, EnvSetupError
from harness_lib.state.pgstore import connecting, lists, rows, setup
from harness_lib.state.pgstore.connecting import SCHEMA
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system.clock import SYSTEM
from harness_lib.task import Task
from tests.state.pgstore.beside import claim, claimed, exact, finished, waiting
from tests.state.pgstore.machines import Shared, add
from tests.state.pgstore.people import People
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("apart")
NEXT = SCHEMA + 1
# What a later harness might bring: a column that is filled from what is there.
LATER = f"""
alter table harness.task add column later text;
update harness.task set later = id;
update harness.about set version = {NEXT};
"""


@contextmanager
def newer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make a harness of this one that has one more numbered file."""
    text_of = setup.text_of
    with monkeypatch.context() as patch:
        patch.setattr(connecting, "SCHEMA", NEXT)
        patch.setattr(setup, "text_of", lambda version: LATER if version == NEXT else text_of(version))
        yield


@pytest.fixture
def update(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Return what makes a newer harness of this one for good."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(newer(monkeypatch))


def test_a_list_in_work_is_brought_up_to_date(shared: Shared, update: Callable[[], None]) -> None:
    store = shared.with_tasks()
    before, log = store.whole(), store.log_tail()
    update()
    acts = (store.ask, lambda: add(store, "task-003"), lambda: setup.set_up(shared.server))
    for act in acts:
        with pytest.raises(EnvSetupError, match=f"format {SCHEMA}.* format {NEXT}") as caught:
            act()
        hint = "Bring it up to date, once for all machines: harness store upgrade URL"
        assert caught.value.hint == hint
    assert setup.upgrade(shared.server) == SCHEMA
    assert setup.upgrade(shared.server) == NEXT

    assert (store.whole(), store.log_tail()) == (before, log)
    assert shared.sql("select bool_and(later = id), count(*) from harness.task") == [(True, 2)]
    add(store, "task-003")
    assert store.ask().counts().total == 3


def test_a_list_of_the_first_format_is_brought_up_to_date(shared: Shared) -> None:
    """Until then a look at it says what to do; after that its tallies go on from what they were."""
    store = shared.with_tasks()
    shell = store.whole()._replace(tasks=(), sessions=())
    with connecting.connect(shared.server) as conn:
        conn.execute("drop schema harness cascade")
        conn.execute(setup.text_of(1).encode())
        assert lists.create(conn, shared.name, shell)
        ((key, uuid),) = conn.execute("select key, uuid::text from harness.list").fetchall()
        rows.Rows(conn, key).add([Task("task-001", "One"), Task("task-002", "Two")])
    link = store.link._replace(uuid=uuid, mirrored=0, op="")
    link.save(store.root)
    store = PgStore(store.root, link, timeout=30.0, clock=SYSTEM)
    with pytest.raises(EnvSetupError, match="an older format") as caught:
        store.whole()
    assert "harness store upgrade" in str(caught.value.hint)

    assert setup.upgrade(shared.server) == 1

    add(store, "task-003")
    finished(store, claimed(store, "one").id)
    counts = store.ask().counts()
    assert (counts.total, counts.completed, counts.pending) == (3, 1, 2)
    assert exact(shared)


def test_new_tables_are_made_by_all_files_in_turn(shared: Shared, update: Callable[[], None]) -> None:
    update()
    with shared.apart():
        assert setup.present(shared.server) == NEXT
        numbered = [setup.text_of(version) for version in range(1, NEXT + 1)]
        assert setup.texts() == "\n".join(numbered)
        assert numbered[-1] == LATER
        shared.with_tasks()


def test_an_upgrade_keeps_the_roles(people: People, update: Callable[[], None]) -> None:
    update()
    assert setup.upgrade(people.shared.server) == SCHEMA
    store = people.machine("worker")
    with psycopg.connect(store.link.url) as conn, pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("update harness.task set later = 'x'")


def test_an_upgrade_that_fails_changes_nothing(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, update: Callable[[], None]
) -> None:
    store = shared.with_tasks()
    before = store.whole()
    with monkeypatch.context() as patch:
        patch.setattr(connecting, "SCHEMA", NEXT)
        patch.setattr(setup, "text_of", lambda _: LATER + "select no_such_column;")
        with pytest.raises(EnvSetupError):
            setup.upgrade(shared.server)
    assert setup.present(shared.server) == SCHEMA
    assert store.whole() == before
    update()
    assert setup.upgrade(shared.server) == SCHEMA


def test_tables_that_lack_a_column_are_named_as_older(shared: Shared) -> None:
    """The first question reads more than the format, and fails before that can be compared."""
    store = shared.with_tasks()
    shared.sql("alter table harness.about drop column reads")
    with pytest.raises(EnvSetupError, match="an older format") as caught:
        store.ask()
    assert "reads does not exist" in caught.value.message
    assert "harness store upgrade" in str(caught.value.hint)
    assert "restore a backup" in str(caught.value.hint)


def test_what_is_only_shown_changes_nothing(shared: Shared, update: Callable[[], None]) -> None:
    update()
    shared.sql(f"update harness.about set version = {SCHEMA}")
    assert setup.texts(setup.present(shared.server)) == LATER
    assert setup.present(shared.server) == SCHEMA


def test_an_older_harness_works_on_beside_a_newer_one_until_it_no_longer_may(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = shared.with_tasks(3)
    mine = claimed(old, "old")
    with newer(monkeypatch):
        new = shared.machine("second")
        assert setup.upgrade(shared.server) == SCHEMA
        theirs = claimed(new, "new")
    finished(old, mine.id)
    add(old, "task-004")
    assert old.ask().counts().completed == 1

    shared.sql(f"update harness.about set writes = {NEXT}")
    assert [task.id for task in old.ask().in_progress()] == [theirs.id]
    with pytest.raises(EnvSetupError, match=f"format {NEXT}, and this harness knows {SCHEMA}") as caught:
        add(old, "task-005")
    assert not isinstance(caught.value, AwayError)
    assert caught.value.hint == f"Update harness on this machine to {__version__} or a later version."
    with newer(monkeypatch):
        finished(new, theirs.id)
        assert (new.ask().counts().completed, new.ask().counts().total) == (2, 4)
    assert exact(shared)


def test_a_change_that_is_under_way_is_waited_for(shared: Shared) -> None:
    store = shared.with_tasks(2)
    thread = threading.Thread(target=shared.sql, args=[LATER])
    with store.transaction("tasks") as tx:
        mine = claim(tx, "one")
        # Asking writes what was changed so far.
        tx.counts()
        thread.start()
        while not waiting(shared):
            pass
    thread.join()
    finished(store, mine.id)
    assert store.ask().counts().completed == 1
    assert exact(shared)


def test_an_upgrade_that_the_server_ends_in_favour_of_a_look_is_made_again(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for a table that the other has: whoever looks at them takes them in an order of its own."""
    held = "alter table harness.task add column soon text; select pg_advisory_xact_lock(42);"
    in_turn = f"{held} alter table harness.event add column soon text; {LATER}"
    with ThreadPoolExecutor(2) as pool:
        shared.with_tasks(2)
        with psycopg.connect(shared.server) as look, psycopg.connect(shared.server) as gate:
            # The server asks first the one whose patience ends first: that shall be the upgrade.
            look.execute("set deadlock_timeout = '1h'")
            look.execute("select from harness.event")
            gate.execute("select pg_advisory_lock(42)")
            monkeypatch.setattr(connecting, "SCHEMA", NEXT)
            monkeypatch.setattr(setup, "text_of", lambda _: in_turn)
            upgrade = pool.submit(setup.upgrade, shared.server)
            until("the upgrade", lambda: waiting(shared) == 1)
            tasks = pool.submit(lambda: look.execute("select from harness.task").fetchall())
            until("the look", lambda: waiting(shared) == 2)
            gate.execute("select pg_advisory_unlock(42)")
            assert len(tasks.result()) == 2
            look.commit()
            assert upgrade.result() == SCHEMA
        assert setup.present(shared.server) == NEXT

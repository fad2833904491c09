"""What a store in a database does when the database is away, slow, set back, newer, or loses an answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import NoReturn

import psycopg
import pytest

from harness_lib.errors import AwayError, EnvSetupError, Exit, HeldError, LocalBusyError
from harness_lib.runs.waiting import passes
from harness_lib.state.codec import ContractError
from harness_lib.state.pgstore import checking, connecting, lists, setup
from harness_lib.state.pgstore.connecting import SCHEMA
from harness_lib.state.pgstore.store import Doubt, PgStore
from harness_lib.system.clock import Clock
from harness_lib.system.state_lock import StateLock
from harness_lib.task import Task
from tests import postgres
from tests.state.pgstore.beside import claim, claimed, finished, waiting
from tests.state.pgstore.line import Line
from tests.state.pgstore.machines import Shared, add, ids
from tests.waiting import until

ODD = (
    "client_encoding to latin1",
    "datestyle to 'sql, dmy'",
    "standard_conforming_strings to off",
    "bytea_output to escape",
    "timezone to 'Pacific/Chatham'",
)
LONG = Task("task-009", "\0 \ud800", description="\udfff\0" + "x" * 19_000)


def test_looking_works_from_the_mirror_and_says_how_old_it_is(shared: Shared, line: Line) -> None:
    store = shared.with_tasks(line=line)
    hour_ago = datetime.now(timezone.utc).timestamp() - 3600
    line.cut()
    os.utime(store.root.link, (hour_ago, hour_ago))
    answers = store.ask()
    assert [task.id for task in answers.search()] == ["task-001", "task-002"]
    (warning,) = answers.warnings
    assert "cannot be reached" in warning
    assert "(60 minutes ago)" in warning
    assert store.log_tail()[-1].endswith("Begun for a test")
    line.mend()
    assert store.ask().warnings == ()


def test_a_ctrl_c_while_a_look_is_ended_is_not_lost(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a handler raises in a finalizer, Python prints and forgets."""
    store = shared.with_tasks()

    def be_interrupted(_conn: connecting.Asking) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(connecting.Asking, "rollback", be_interrupted)
    # Not by `ask`: on a machine that is too busy for the database it would answer from the mirror.
    store.ask_now().counts()
    with pytest.raises(KeyboardInterrupt):
        store.ask_now()
    monkeypatch.undo()
    assert ids(store) == ["task-001", "task-002"]


def test_who_has_asked_gets_answers_also_once_the_database_is_away(
    shared: Shared, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first question waits for it, and says so; the others do not."""
    store = shared.with_tasks(line=line)
    asked = store.ask()
    with store.transaction() as tx:
        first = tx.next_ready()
    line.cut()
    assert first is not None
    tries: list[str] = []

    def connect(url: str) -> NoReturn:
        tries.append(url)
        raise psycopg.OperationalError("It is away.")

    monkeypatch.setattr(connecting, "connect", connect)
    for questions in (asked, tx):
        assert questions.next_ready() == first
        assert questions.counts().pending == 2
        assert ["This is the list as" in warning for warning in questions.warnings] == [True]
    assert tries == [line.url]


def test_what_a_claim_depends_on_is_not_asked_of_the_mirror(shared: Shared, line: Line) -> None:
    """It lacks what was changed while it could not be written."""
    store = shared.with_tasks(line=line, timeout=0.1)
    asked = store.ask_now()
    line.cut()
    for ask in (store.ask_now, lambda: store.ask_now(waits=False), lambda: asked.task("task-001")):
        with pytest.raises(AwayError, match="cannot be reached"):
            ask()
    line.mend()
    assert store.ask_now().task("task-001") is not None


def test_a_change_waits_for_the_database_and_then_says_that_nothing_was_changed(
    shared: Shared, line: Line
) -> None:
    store = shared.with_tasks(line=line, timeout=1.5)
    line.cut()
    began = Clock().monotonic()
    for act in (lambda: add(store, "task-003"), store.ask_to_change):
        with pytest.raises(EnvSetupError, match="cannot be reached, so nothing was changed"):
            act()
    assert Clock().monotonic() - began > 1.5
    line.mend()
    add(store, "task-004")
    assert ids(store) == ["task-001", "task-002", "task-004"]


def test_a_database_that_is_back_in_time_is_waited_for(shared: Shared, line: Line) -> None:
    class Mending(Clock):
        def sleep(self, _seconds: float) -> None:
            line.mend()

    shared.with_tasks()
    store = shared.machine("second", line=line, clock=Mending())
    line.cut()
    add(store, "task-003")
    assert len(ids(store)) == 3


def test_a_database_that_accepts_and_never_answers_holds_nobody_for_ever(
    shared: Shared, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shared.with_tasks(line=line, timeout=1)
    monkeypatch.setattr("harness_lib.state.pgstore.connecting.CONNECT_SECONDS", 2)
    monkeypatch.setattr("harness_lib.state.pgstore.connecting.ANSWER_SECONDS", 0.2)
    assert len(ids(store)) == 2
    line.hush()
    assert ids(store) == ["task-001", "task-002"]
    with pytest.raises(EnvSetupError, match="nothing was changed"):
        add(store, "task-003")


@pytest.mark.parametrize("ended", ["lost", "killed"])
def test_a_change_in_doubt_that_is_still_under_way_is_waited_for(shared: Shared, ended: str) -> None:
    """Also one of tasks only, beside which others of its kind go on."""
    store, op = shared.with_tasks(), os.urandom(16).hex()
    Doubt(store.root).note(op)

    until_then = store._clock.monotonic() + 30
    ways: dict[str, Callable[[], object]] = {
        "lost": lambda: store._find_out(Doubt(store.root), OSError(), until_then),
        "killed": lambda: claimed(store, "one"),
    }
    with ThreadPoolExecutor(1) as pool, connecting.connect(shared.server) as conn:
        lists.begin(conn, writes=True)
        lists.lock(conn, store.link.uuid, shared=True)
        lists.log(store.look().rows._replace(conn=conn), op, ["Done"])
        asked = pool.submit(ways[ended])
        until("a wait", lambda: asked.done() or waiting(shared))
        conn.commit()
        asked.result()
    assert ["its change was made" in text for text in store.warnings] == [True] * (ended == "killed")


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_answer_to_a_commit_is_lost_and_found_again(shared: Shared, line: Line, when: str) -> None:
    store = shared.with_tasks(line=line)
    line.lose = when
    if when == "before":
        with pytest.raises(AwayError, match="lost, and nothing was changed"):
            add(store, "task-003")
    else:
        add(store, "task-003")
    assert line.lost == 1
    assert ("task-003" in ids(store)) is (when == "after")
    add(store, "task-004")
    assert ids(store)[2:] == (["task-003"] if when == "after" else []) + ["task-004"]
    assert store.warnings == ()


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_stays_in_doubt_is_answered_by_the_next_command(shared: Shared, line: Line, when: str) -> None:
    store = shared.with_tasks(line=line)
    line.lose, line.then_cut = when, True
    store = shared.machine("first", timeout=0.1)
    with pytest.raises(AwayError, match="not known yet"):
        add(store, "task-003")
    line.mend()
    again = shared.machine("first")
    facts = dict(checking.facts(again))
    assert facts["in doubt"].startswith("one change")
    add(again, "task-004")
    fate = "its change was made" if when == "after" else "nothing of it was changed"
    assert [fate in text for text in again.warnings] == [True]
    assert ids(again)[2:] == (["task-003"] if when == "after" else []) + ["task-004"]
    assert dict(checking.facts(again))["in doubt"] == "nothing"


def test_whoever_waits_for_the_database_holds_up_no_other_command_of_its_machine(
    shared: Shared, line: Line
) -> None:
    """Several workers of a run wait at once, for up to half an hour: none takes the others for stuck."""
    taken: list[float] = []

    class Asked(Clock):
        def sleep(self, seconds: float) -> None:
            with StateLock(store.root.lock_file, timeout=0.0):
                taken.append(seconds)
            super().sleep(seconds)

    store = shared.with_tasks(line=line)
    patient = PgStore(store.root, store.link, timeout=1.5, clock=Asked())
    line.cut()
    with pytest.raises(AwayError, match="cannot be reached"):
        add(patient, "task-003")
    line.mend()
    assert taken


def test_a_command_of_this_machine_that_is_slow_is_waited_for_and_passes(shared: Shared) -> None:
    """It may be one that the database does not answer: a run waits then, and blames no task."""
    store = shared.with_tasks()
    beside = PgStore(store.root, store.link, timeout=0.3)
    with (
        store.transaction(),
        pytest.raises(LocalBusyError, match=r"held by pid \d+.*nothing was changed") as why,
    ):
        add(beside, "task-003")
    assert passes(why.value)
    assert why.value.exit_code == Exit.HELD


def test_a_machine_that_is_slow_is_waited_for_and_then_named(shared: Shared) -> None:
    shared.with_tasks()
    slow, quick = shared.machine("slow"), shared.machine("quick", timeout=0.3)
    with slow.transaction(), pytest.raises(HeldError, match="Another machine"):
        add(quick, "task-003")
    add(quick, "task-003")


def test_a_forgotten_transaction_frees_the_list(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    shared.with_tasks()
    slow, quick = shared.machine("slow"), shared.machine("quick")
    monkeypatch.setattr("harness_lib.state.pgstore.lists.STATEMENT_MS", 200)

    def forget() -> None:
        with slow.transaction() as tx, monkeypatch.context() as patient:
            patient.setattr("harness_lib.state.pgstore.lists.STATEMENT_MS", 10_000)
            tx.add([Task("task-008", "Too late")])
            add(quick, "task-003")

    with pytest.raises(EnvSetupError, match="nothing was changed"):
        forget()
    assert ids(quick) == ["task-001", "task-002", "task-003"]


@pytest.mark.parametrize("days", [365, -365])
def test_leases_count_by_the_clock_of_the_database(shared: Shared, days: int) -> None:
    """A machine whose clock is a year off loses nothing, and takes nothing over."""

    class YearOff(Clock):
        def now(self) -> datetime:
            return super().now() + timedelta(days=days)

    right, wrong = shared.with_tasks(), shared.machine("second", clock=YearOff())
    claimed = {}
    for store in (right, wrong):
        with store.transaction("tasks") as tx:
            assert abs(tx.now - datetime.now(timezone.utc)) < timedelta(minutes=5)
            claimed[store] = claim(tx, store.root.path.name)
    for store, task in claimed.items():
        assert abs(store.ask().now - datetime.now(timezone.utc)) < timedelta(minutes=5)
        assert right.ask().expired() == wrong.ask().expired() == ()
        with store.transaction("tasks") as tx:
            assert tx.expired() == ()
        finished(store, task.id)
    assert right.ask().counts().completed == 2


def test_tables_of_a_newer_harness_are_not_touched(shared: Shared) -> None:
    """Those of an expanded format are, as test_upgrade.py says."""
    with shared.apart():
        store = shared.with_tasks()
        newer = SCHEMA + 1
        shared.sql(f"update harness.about set version = {newer}, reads = {newer}, writes = {newer}")
        for act in (store.ask, lambda: add(store, "task-003"), lambda: setup.set_up(shared.server)):
            with pytest.raises(EnvSetupError, match=f"format {SCHEMA + 1}, and this harness knows {SCHEMA}"):
                act()


def test_a_list_that_is_gone_or_made_again_is_not_taken_for_the_same(shared: Shared) -> None:
    store = shared.with_tasks()
    shared.sql(f"update harness.list set name = '{shared.name}, renamed' where name = '{shared.name}'")
    with pytest.raises(EnvSetupError, match=f"no list called.* It is called {shared.name}, renamed there"):
        store.ask()
    shared.sql(f"delete from harness.list where name = '{shared.name}, renamed'")
    with pytest.raises(EnvSetupError, match="There is no list called"):
        store.ask()
    shared.sql(f"insert into harness.list (name, shell) select '{shared.name}', '{{}}'")
    for act in (store.ask, lambda: add(store, "task-003")):
        with pytest.raises(EnvSetupError, match="removed and made again"):
            act()


def test_a_list_that_is_there_again_is_not_to_be_joined_anew(shared: Shared) -> None:
    """A look has met the moment between the end of the tables and their restore."""
    store = shared.with_tasks()
    with pytest.raises(EnvSetupError, match="It is there again now") as caught:
        store.moments.accepted(None, changes=True)
    assert caught.value.hint == "Type the command again."


def test_a_database_that_was_set_back_is_noticed_and_goes_on_only_if_told(shared: Shared) -> None:
    """Its fences go on above those that were given before: a late worker's is refused still."""
    store = shared.with_tasks()
    with postgres.set_back(shared.server, shared.name), store.transaction() as tx:
        first = tx.tasks(["task-001"])[0]
        tx.replace(first._replace(fence=7))
        tx.add([Task("task-003", "Lost with the backup", fence=4)])
    for again in (store, shared.machine("first")):
        with pytest.raises(EnvSetupError, match="was set back"):
            again.ask()
        with pytest.raises(EnvSetupError, match="was set back"):
            add(again, "task-003")
    (problem,) = checking.check(store, repair=False)
    assert "was set back" in problem
    assert checking.check(store, repair=True) == []
    assert ids(store) == ["task-001", "task-002"]
    # Not even the list that is kept gets into a commit.
    assert {path.name for path in store.root.path.iterdir()} <= set(store.root.standing_names())
    assert store.ask().tasks(["task-001"])[0].fence == 7
    add(store, "task-003")
    assert shared.machine("first").ask().tasks(["task-003"])[0].fence == 4


def test_a_loss_is_noticed_also_after_others_have_gone_on(shared: Shared) -> None:
    """As after a failover to a standby that lacked the last changes: the numbers are higher again."""
    store, other = shared.with_tasks(), shared.machine("second")
    with postgres.set_back(shared.server, shared.name):
        add(store, "task-003")
        seen = store.moments.looked().version
    for number in range(4, 9):
        add(other, f"task-{number:03}")
    assert other.moments.looked().version.number > seen.number
    for again in (store, shared.machine("first")):
        with pytest.raises(EnvSetupError, match=f"event {seen.number} of"):
            add(again, "task-009")
    assert len(checking.check(store, repair=False)) == 1
    assert checking.check(store, repair=True) == []
    add(store, "task-009")
    lost = f" WARN the database was set back: it lacks event {seen.number}, which was seen"
    assert any(lost in line for line in store.log_tail(20))
    assert ids(shared.machine("first")) == [f"task-{n:03}" for n in (1, 2, 4, 5, 6, 7, 8, 9)]


def test_a_removed_task_that_comes_again_has_a_higher_fence(shared: Shared) -> None:
    store = shared.with_tasks()
    with store.transaction() as tx:
        tx.replace(tx.tasks(["task-002"])[0]._replace(fence=5))
    with store.transaction() as tx:
        tx.remove("task-002")
    add(store, "task-002")
    for machine in (store, shared.machine("second")):
        assert machine.ask().tasks(["task-002"])[0].fence == 5


def test_any_text_comes_back_as_it_was(shared: Shared) -> None:
    store = shared.with_tasks(1)
    with store.transaction() as tx:
        tx.add([LONG])
        tx.log("WARN", "\0 \ud800 \n" + "y" * 1000, 0)
    other = shared.machine("second")
    assert other.ask().tasks([LONG.id]) == (LONG,)
    assert other.root.state.read_bytes() == store.root.state.read_bytes()
    assert other.log_tail() == store.log_tail()


def test_settings_of_a_login_and_a_database_without_an_encoding_change_nothing(shared: Shared) -> None:
    """Such a database is made where the server was set up without a locale."""
    name, server = f"odd_{os.urandom(4).hex()}", shared.server
    shared.sql(f"create role {name} login")
    for setting in ODD:
        shared.sql(f"alter role {name} set {setting}")
    shared.sql(f"create database {name} owner {name} template template0 encoding sql_ascii locale 'C'")
    shared.server = psycopg.conninfo.make_conninfo(server, dbname=name, user=name)
    setup.set_up(shared.server)
    store = shared.with_tasks()
    with store.transaction() as tx:
        tx.add([Task("t\u00e1sk", "\u2603 \\\\ '")])
    assert shared.machine("second").whole().tasks == store.whole().tasks
    assert checking.check(store, repair=False) == []
    shared.server = server
    shared.sql(f"drop database {name} with (force)")
    shared.sql(f"drop role {name}")


def test_what_the_database_refuses_is_not_taken_for_a_database_that_is_away(shared: Shared) -> None:
    """A run would wait half an hour for what never changes."""
    store = shared.with_tasks()
    with pytest.raises(EnvSetupError, match="refused that: division by zero") as caught:
        store.apart(lambda conn: conn.execute("select 1 / 0"))
    assert not isinstance(caught.value, AwayError)


def test_a_title_of_a_megabyte_is_refused_by_name_with_all_else_that_is_wrong(shared: Shared) -> None:
    store = shared.with_tasks()

    def add_three() -> None:
        with store.transaction() as tx:
            tx.propose(Task("proposed-1", attempts=-1))
            tx.add([Task("task-003", "x" * 1_000_000), Task("task-004", depends_on=("nobody",))])

    with pytest.raises(ContractError, match=r"(?s)proposals.*title.*no task has this id"):
        add_three()
    assert ids(store) == ["task-001", "task-002"]


def test_a_standby_is_told_from_a_primary_and_a_failover_is_waited_for(shared: Shared) -> None:
    """A server that takes no changes is soon a primary again, or another one is."""

    class Promoting(Clock):
        def sleep(self, _seconds: float) -> None:
            postgres.set_read_only(shared.server, on=False)

    with shared.apart():
        store = shared.with_tasks(timeout=0.2)
        patient = shared.machine("second", clock=Promoting())
        postgres.set_read_only(shared.server, on=True)
        assert len(ids(store)) == len(ids(patient)) == 2
        with pytest.raises(AwayError, match="is read-only now, so nothing was changed"):
            add(store, "task-003")
        with pytest.raises(AwayError, match=r"is read-only now\."):
            store.take_turn("main", "first", 1)
        # A standby may not have got so far yet.
        Doubt(store.root).note(os.urandom(16).hex())
        with pytest.raises(AwayError, match="not known yet"):
            store._find_out(Doubt(store.root), OSError(), store._clock.monotonic())
        add(patient, "task-003")
        assert len(ids(store)) == 3

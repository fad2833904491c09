"""Who may do what in a list, also with psql: a real server, real roles, hostile SQL."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from harness_lib.errors import EnvSetupError
from harness_lib.rules import transitions
from harness_lib.state import api, reading
from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore import checking, rows, setup
from harness_lib.state.pgstore.connecting import SCHEMA
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system.clock import SYSTEM
from harness_lib.system.place.roots import Root
from harness_lib.task import OnFailure, Session, SessionConfig, Task, Validation
from tests.docs.pages import page
from tests.state.pgstore.attacks import ATTACKS, PUT, SPARE
from tests.state.pgstore.beside import claim, there
from tests.state.pgstore.machines import Shared
from tests.state.pgstore.people import CHECK, People, succeeds, user_of

ROLES = ("reader", "worker", "author", "owner")


def test_an_upgrade_gives_the_rights_of_roles_again(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    read, file = [], setup._file

    def noted(name: str) -> str:
        read.append(name)
        return file(name)

    monkeypatch.setattr(setup, "_file", noted)

    setup.set_up(people.shared.server)
    assert read == []
    setup.upgrade(people.shared.server)
    assert read == ["roles.sql"]


def begin_session(tx: api.Tx) -> None:
    tx.add_session(Session(1, "me", "here"))
    tx.count_session(1)


def release(tx: api.Tx) -> None:
    claim(tx, "me")
    tx.remove_session(1)


def repair(tx: api.Tx) -> None:
    """Do what the final check of a run does."""
    check = CHECK._replace(red_first=False)
    tx.add([Task("task-003", "Repair", priority="P0", depends_on=("task-001",), validation=check)])


def edit(tx: api.Tx) -> None:
    task = there(tx, "task-002")
    tx.replace(task._replace(validation=Validation("new"), priority="P0", depends_on=()))
    tx.drop_proposal("proposed-1")


def settings(tx: api.Tx) -> None:
    tx.configure(tx.settings()._replace(max_sessions=7))
    tx.forget_attempts(1)


BY_ROLE: dict[str, list[Callable[[api.Tx], None]]] = {
    "reader": [],
    "worker": [
        lambda tx: tx.log("WARN", "said", 0),
        begin_session,
        lambda tx: tx.propose(Task("proposed-1", validation=Validation("true"))),
        lambda tx: tx.propose(Task("proposed-2", "Without a check")),
        repair,
        release,
    ],
    "author": [edit, settings, lambda tx: tx.add([Task("task-004", validation=Validation("newer"))])],
    "owner": [lambda tx: tx.remove("task-004")],
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_what_it_may_and_nothing_of_the_next_one(people: People, role: str) -> None:
    place = ROLES.index(role)
    store = people.machine(role)
    assert [task.id for task in store.ask().search()][:2] == ["task-001", "task-002"]
    assert dict(checking.facts(store))["role here"] == role
    for each in ROLES[: place + 1]:
        for act in BY_ROLE[each]:
            with store.transaction() as tx:
                act(tx)
    assert checking.check(people.keeper, repair=False) == []
    before = people.keeper.whole()
    # What an owner may do besides is tried below.
    for act in [act for each in ROLES[place + 1 : 3] for act in BY_ROLE[each]]:
        with (
            pytest.raises(EnvSetupError, match="does not let this user do that, so nothing was changed"),
            store.transaction() as tx,
        ):
            act(tx)
    assert people.keeper.whole() == before


def test_only_an_owner_lets_others_in_moves_the_list_and_makes_one(people: People) -> None:
    for role in ROLES[:3]:
        store = people.machine(role)
        with pytest.raises(EnvSetupError, match="does not let this user"):
            setup.to_file(store, SYSTEM.now())
        with pytest.raises(InsufficientPrivilege, match="you own no"):
            people.admit("keeper", "owner", by=store.link.url)
    owner = people.machine("owner")
    people.admit(user_of(people.login()), "worker", by=owner.link.url)
    mine = PgStore(Root(people.directory("mine")), Link(owner.link.url, "mine"))
    mine.begin(SessionConfig("concurrent"), "Begun by a person")
    with mine.transaction() as tx:
        tx.add([Task("task-001", validation=Validation("mine"))])
    assert dict(checking.facts(mine))["role here"] == "owner"
    assert setup.to_file(owner, SYSTEM.now()) == 3


def test_a_reader_joins_and_looks(people: People) -> None:
    root = Root(people.directory("looks"))
    link = Link(people.login("reader"), people.shared.name)
    assert setup.join(root, link, SYSTEM).counts().total == 3
    assert "Held" in root.state.read_text()


def test_who_is_no_member_sees_no_list(people: People) -> None:
    nobody, elsewhere = people.login(), people.login(None, "owner")
    for url, words in ((nobody, "permission denied for schema"), (elsewhere, "There is no list called")):
        with pytest.raises(EnvSetupError, match=words):
            people.shared.machine(f"m-{os.urandom(4).hex()}", url=url).ask()


def test_a_role_is_changed_and_taken_away(people: People) -> None:
    url = people.login("author")
    store = people.shared.machine("changes", url=url)
    with store.transaction() as tx:
        settings(tx)
    for role, words in (
        ("worker", "permission denied for table list"),
        (None, "permission denied for schema"),
    ):
        people.admit(user_of(url), role)
        with pytest.raises(EnvSetupError, match=words), store.transaction() as tx:
            settings(tx)


def test_the_line_of_the_page_lets_somebody_in(people: People) -> None:
    line = re.findall(r"`(select harness\.admit\(.*?\))`", page("many-machines.md"))
    assert len(line) == 1
    with psycopg.connect(people.shared.server) as conn:
        if not conn.execute("select 1 from pg_roles where rolname = 'anna'").fetchone():
            conn.execute("create role anna login")
        conn.execute(line[0].replace("'shop'", psycopg.sql.quote(people.shared.name)).encode())
    url = psycopg.conninfo.make_conninfo(people.shared.server, user="anna")
    with people.shared.machine("anna", url=url).transaction() as tx:
        begin_session(tx)


def test_a_group_may_be_a_member(people: People) -> None:
    group, url = people.login("worker"), people.login()
    names = [psycopg.sql.Identifier(user_of(each)) for each in (group, url)]
    with psycopg.connect(people.shared.server) as conn:
        conn.execute(psycopg.sql.SQL("grant {} to {}").format(*names))
    with people.shared.machine("in-group", url=url).transaction() as tx:
        begin_session(tx)


SECRET = ("task", "event", "tally", "member", "list", "dep", "proposal", "session", "removed", "turn")


@pytest.mark.parametrize("elsewhere", [None, "author"])
def test_a_hostile_worker_writes_nothing_that_runs(people: People, elsewhere: str | None) -> None:
    """Who may write the columns in another list may not do it here; without each guard it would be done."""
    url = people.login("worker", elsewhere)
    with psycopg.connect(url) as conn:
        for name, (sql, gone) in ATTACKS.items():
            attack = sql.replace("MINE", str(people.key))
            assert not succeeds(conn, attack), name
            if elsewhere:
                people.shared.sql(gone)
                works = succeeds(conn, attack)
                conn.rollback()
                assert works, f"{name}: {gone}"
                setup.set_up(people.shared.server, roles=True)
    assert checking.check(people.keeper, repair=False) == []


def test_nobody_reads_or_writes_a_list_of_others(people: People) -> None:
    for row in (
        "removed values (%s, 'gone', 1)",
        "dep values (%s, 'secret', 'secret')",
        "session (list, number, document) values (%s, 1, '')",
        "turn values (%s, 'b', 'h', 1, now())",
        "proposal (list, id, brief, validation, on_failure, document) values (%s, '', '', '', '', '')",
    ):
        people.shared.sql(f"insert into harness.{row}", people.other)
    with psycopg.connect(people.login("author")) as conn:
        for table in SECRET:
            key = "key" if table == "list" else "list"
            query = f"select from harness.{table} where {key} = {people.other}"
            assert not succeeds(conn, query), table
            assert succeeds(conn, query.replace(str(people.other), str(people.key))) or table in SECRET[5:], (
                table
            )
            people.shared.sql(SPARE.format(table))
            assert succeeds(conn, query), table
            conn.rollback()
            setup.set_up(people.shared.server, roles=True)
        for sql in (
            f"update harness.task set status = 'failed' where list = {people.other}",
            f"insert into harness.event (list, op, machine) values ({people.other}, gen_random_uuid(), 'm')",
            f"insert into harness.session (list, number, document) values ({people.other}, 2, '')",
        ):
            assert not succeeds(conn, sql), sql


def test_what_workers_write_is_not_taken_for_what_authors_write(people: People) -> None:
    """Neither in their own column, nor twice in it, nor under the name of another task."""
    evil = {"title": "Evil", "validation": {"command": "evil"}, "status": "pending", "id": "task-002"}
    task = people.keeper.ask().tasks(["task-001"])[0]
    document = json.dumps({**reading.written(task), **evil})
    with psycopg.connect(people.victim.link.url) as conn:
        conn.execute(
            f"{PUT} document = %s where list = %s and id = 'task-001'".encode(), (document, people.key)
        )
        conn.execute(
            "insert into harness.task (list, id, place, fence, brief, validation, on_failure, document) "
            "select list, 'task-666', 666, 0, brief, validation, on_failure, '{\"status\": \"pending\"}' "
            "from harness.task where list = %s and id = 'task-002'",
            (people.key,),
        )
    found = {task.id: (task.title, task.validation.command) for task in people.keeper.whole().tasks}
    assert found == {
        "task-001": ("Held", "test -f done"),
        "task-002": ("Waits", "true"),
        "task-666": ("Waits", "true"),
        "task-009": ("Free", "test -f done"),
    }
    named = checking.check(people.keeper, repair=False)
    assert [line.partition(":")[0] for line in named][:2] == ["'task-001'", "'task-002'"]


def test_each_field_is_in_the_column_of_who_may_write_it() -> None:
    """A new field is a worker's, unless it is named as an author's."""
    task = Task("task-001", "Title", validation=CHECK, on_failure=OnFailure("x"), extra={"x-mine": 1})
    texts = rows.texts_of(task)
    assert rows.decoded(*(texts[name] for name in rows.TEXTS)) == task
    bare = rows.texts_of(Task(""))
    # As roles.sql has them.
    assert (bare["validation"], bare["on_failure"]) == (
        '{"command": null, "timeout_seconds": 300}',
        '{"cleanup": null}',
    )
    assert '"red_first": true, ' in texts["validation"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_task_that_waits_for_its_merge_is_brought_to_its_end_by_any_worker(
    people: People, fails: bool
) -> None:
    """Whoever has the turn merges it or hands it back, in several changes."""
    with people.victim.transaction("tasks") as tx:
        task = there(tx, "task-001")
        tx.replace(transitions.begin_merge(task, now=tx.now, commit="a" * 40))
    other = people.machine("worker")
    with other.transaction("tasks") as tx:
        task = there(tx, "task-001")
        if fails:
            begun = transitions.release(task, now=tx.now, message="no")
        else:
            begun = transitions.begin_commit(task, now=tx.now, head=None, commit="b" * 40)
        tx.replace(begun)
    with other.transaction("tasks") as tx:
        task = there(tx, "task-001")
        tx.replace((transitions.fail if fails else transitions.complete)(task, now=tx.now))
    assert people.keeper.ask().tasks(["task-001"])[0].status == ("pending" if fails else "completed")


def test_every_table_is_under_the_roles_and_they_may_be_set_up_again(people: People) -> None:
    """Also after an upgrade; what was given by hand before would go around them."""
    query = (
        "select relname from pg_class where relnamespace = 'harness'::regnamespace "
        "and relkind in ('r', 'p') and not relrowsecurity"
    )
    assert people.shared.sql(query) == [("about",)]
    people.shared.sql("grant all on all tables in schema harness to public")
    people.shared.sql('drop policy "select" on harness.task')
    setup.upgrade(people.shared.server)
    store = people.machine("worker")
    with store.transaction() as tx:
        begin_session(tx)
    with psycopg.connect(store.link.url) as conn:
        assert not succeeds(conn, f"update harness.task set waits = 0 where list = {people.key}")


def test_without_roles_nobody_is_asked(shared: Shared) -> None:
    store = shared.with_tasks()
    assert dict(checking.facts(store))["role here"].startswith("none: ")
    assert "row level security" not in setup.texts()
    assert "row level security" in setup.texts(SCHEMA, roles=True)

"""Logins that go around the roles: by earlier rights, by groups, by names, by functions of their own."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from harness_lib.state.codec import ContractError
from harness_lib.state.pgstore import checking, rows, setup
from harness_lib.task import Task
from tests.state.pgstore.attacks import EVIL, PUT
from tests.state.pgstore.people import People, succeeds, user_of

BARE = rows.texts_of(Task("proposed-1"))
TRAP = """
create function public.{name} returns {returns} language plpgsql as $$
begin
  update harness.task set ver = ver + 1, validation = '{evil}' where id = 'task-002';
  return {answer};
end $$
"""
# Each fits what harness writes better than the function of PostgreSQL does.
TRAPS = {
    "nextval(text)": ("bigint", "pg_catalog.nextval($1::regclass)"),
    "setval(text, bigint)": ("bigint", "pg_catalog.setval($1::regclass, $2)"),
    "format(text, text)": ("text", "pg_catalog.format($1, variadic array[$2])"),
}


def test_functions_of_others_are_not_called(people: People) -> None:
    """A schema in which everybody may make things, as `public` before PostgreSQL 15, is not looked into."""
    people.shared.sql("grant create on schema public to public")
    with psycopg.connect(people.login("worker"), autocommit=True) as conn:
        for name, (returns, answer) in TRAPS.items():
            conn.execute(TRAP.format(name=name, returns=returns, answer=answer, evil=EVIL).encode())
        conn.execute(
            "create view public.pg_stat_statements as "
            "select nextval('harness.event_seq_seq'::text) as mean_exec_time, 1 as calls, 'harness.' query;"
            "grant select on public.pg_stat_statements to public"
        )
    author = people.machine("author")
    assert "not known" in dict(checking.facts(author))["slowest statements"]
    with author.transaction() as tx:
        tx.remove("task-009")
    setup.upgrade(people.shared.server)
    setup.set_up(people.shared.server, roles=True)
    found = people.keeper.ask().tasks(["task-002"])[0]
    assert found.validation.command == "true"


@pytest.mark.parametrize("group", ["reader", "worker", "author", "owner"])
@pytest.mark.parametrize("role", ["reader", None])
def test_an_owner_of_one_list_leaves_the_groups_of_all_alone(
    people: People, group: str, role: str | None
) -> None:
    """They would lose the rights of the role before."""
    with pytest.raises(InsufficientPrivilege, match=f"harness_{group} is no member"):
        people.admit(f"harness_{group}", role, "-other", by=people.login(None, "owner"))


def test_rights_to_columns_and_to_the_schema_are_withdrawn_too(people: People) -> None:
    url = people.login()
    with psycopg.connect(people.shared.server, autocommit=True) as conn:
        for right in (
            "insert (list, op, machine, login) on harness.event",
            "update (waits) on harness.task",
            "usage, create on schema harness",
        ):
            grant = sql.SQL(f"grant {right} to {{}} with grant option")
            conn.execute(grant.format(sql.Identifier(user_of(url))))
        with psycopg.connect(url) as given:
            given.execute("grant update (waits) on harness.task to public")
    setup.set_up(people.shared.server, roles=True)
    people.admit(user_of(url), "worker")
    with psycopg.connect(url) as conn:
        for attack in (
            "insert into harness.event (list, op, machine, login) values (MINE, gen_random_uuid(), 'm', '')",
            "update harness.task set waits = 0 where list = MINE",
            "create function harness.lists(int) returns int language sql as 'select 1'",
        ):
            assert not succeeds(conn, attack.replace("MINE", str(people.key))), attack


def test_a_task_that_comes_back_has_no_older_fence(people: People) -> None:
    with people.keeper.transaction() as tx:
        tx.remove("task-009")
    back = """
insert into harness.task (list, id, place, fence, document, brief, validation, on_failure)
select list, 'task-009', 9, {}, document, brief, validation, on_failure from harness.task
where list = {} and id = 'task-002'
"""
    people.shared.sql("update harness.removed set fence = 7 where list = %s", people.key)
    with psycopg.connect(people.login("worker")) as conn:
        assert not succeeds(conn, back.format(6, people.key))
        assert succeeds(conn, back.format(7, people.key))


def test_a_proposal_is_decided_on_whatever_its_row_is_called(people: People) -> None:
    texts = rows.texts_of(Task("proposed-1", "Twice"))
    with psycopg.connect(people.login("worker")) as conn:
        for name in ("proposed-1", "proposed-2"):
            conn.execute(
                f"insert into harness.proposal (list, id, {', '.join(texts)}) "
                f"values (%s, %s{', %s' * len(texts)})".encode(),
                (people.key, name, *texts.values()),
            )
    author = people.machine("author")
    for name in ("proposed-1", "proposed-2"):
        assert name in [task.id for task in author.ask().proposals()]
        with author.transaction() as tx:
            tx.drop_proposal(name)
        assert name not in [task.id for task in author.ask().proposals()]


PROPOSE = f"""
insert into harness.proposal (list, id, brief, validation, on_failure, document)
values (MINE, 'proposed-1', '{{}}', '{BARE["validation"]}', '{BARE["on_failure"]}', '[]')
"""
UNREADABLE = {
    f"{PUT} document = '[]' where list = MINE and id = 'task-009'": ("task task-009", "select"),
    PROPOSE: ("task proposed-1", "delete from harness.proposal"),
    'insert into harness.session (list, number, document) values (MINE, 8, \'{"number": "x"}\')': (
        "open sessions",
        "delete from harness.session where number = 8",
    ),
    "insert into harness.session (list, number, document) values (MINE, 9, '[]')": ("an open session", ""),
}


def test_a_row_that_nobody_can_read_is_named(people: People) -> None:
    for attack, (row, undo) in UNREADABLE.items():
        with psycopg.connect(people.victim.link.url) as conn:
            conn.execute(attack.replace("MINE", str(people.key)).encode())
        with pytest.raises(ContractError, match=f"^{row}: "), people.keeper.transaction("tasks") as tx:
            tx.task("task-009")
        people.shared.sql(undo)


@pytest.mark.parametrize("text", ["", "[]", "[" * 10_000])
def test_a_text_of_a_row_is_an_object(text: str) -> None:
    with pytest.raises(ContractError, match="a row: "):
        rows.parsed(text, "a row")

"""Tables of an earlier version are brought up to date with nothing lost; until then nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.state import codec
from harness_lib.state.pgstore import columns, migrations
from harness_lib.state.pgstore.connecting import OLD_BITS, SCHEMA, Link
from harness_lib.state.pgstore.store import PgStore, opened
from harness_lib.system.clock import SYSTEM
from harness_lib.system.place.roots import Root
from harness_lib.task import Checkpoint, Session, SessionConfig, State, Task, Validation
from tests.state.pgstore.machines import Shared

IN_WORK = State(
    session_config=SessionConfig("concurrent"),
    tasks=(
        Task("task-001", "Done \0 \ud800", "completed", completed_at="2025-07-01T10:00:00Z", fence=3),
        Task("task-002", "Held", "in_progress", claimed_by="one", fence=2, checkpoints=(Checkpoint(1, 2),)),
        Task("task-003", "Ready", depends_on=("task-001",)),
        Task("task-004", "Waits", depends_on=("task-002", "task-003"), attempts=1),
        Task("task-005", "Lost", "failed", attempts=3, error_log=("[TEST_FAIL] no",)),
    ),
    sessions=(Session(4, "one", "here"), Session(7, "two", "there")),
    session_count=7,
    attempts_reset=5,
    proposals=(Task("p-1", "Do this, too"),),
    extra={"x-mine": 1},
)


def as_version_1(shared: Shared, root: Root) -> Link:
    """Write the list as version 1 did, after change 12, of which this machine has seen 11."""
    state = codec.sealed(IN_WORK, State())
    with psycopg.connect(shared.server, autocommit=True) as conn:
        conn.execute("drop schema harness cascade")
        conn.execute(migrations.text_of(1).encode())
        shell = json.dumps(codec.encode_shell(state))
        key, uuid = conn.execute(
            "insert into harness.list (name, version, shell) values (%s, 12, %s) returning key, uuid::text",
            (shared.name, shell),
        ).fetchone() or (0, "")
        for place, task in enumerate(state.tasks):
            document = json.dumps(codec.written(task))
            conn.execute(
                "insert into harness.task (list, id, place, changed, fence, document) "
                "values (%s, %s, %s, 1, %s, %s)",
                (key, task.id, 10_000_000 + place, task.fence, document),
            )
        conn.execute("insert into harness.removed values (%s, 'task-006', 9)", (key,))
        for version in (11, 12):
            conn.execute(
                "insert into harness.event (list, version, number, op, machine, line) "
                "values (%s, %s, 0, gen_random_uuid(), 'one', %s)",
                (key, version, f"line of change {version}"),
            )
    link = Link(shared.server, shared.name, uuid)
    link.save(root)
    old = {**json.loads(root.link.read_text()), "mirrored": 11}
    root.link.write_text(
        json.dumps({name: old[name] for name in ("url", "list", "uuid", "mirrored", "place")})
    )
    root.log.write_text("line of change 11\n")
    return link


def test_a_list_in_work_is_brought_up_to_date(shared: Shared, tmp_path: Path) -> None:
    root = Root(tmp_path.resolve() / "one")
    root.path.mkdir()
    with shared.apart():
        as_version_1(shared, root)
        store = opened(root, SYSTEM)
        for act in (
            store.ask,
            lambda: store.transaction().__enter__(),
            lambda: migrations.set_up(shared.server),
        ):
            with pytest.raises(EnvSetupError, match="format") as caught:
                act()
            assert "harness store upgrade" in str(caught.value.hint)
        assert migrations.upgrade(shared.server) == 1
        assert migrations.upgrade(shared.server) == SCHEMA

        assert codec.encode(store.whole()) == codec.encode(codec.sealed(IN_WORK, State()))
        asked = store.ask()
        ready = asked.next_ready()
        assert ready is not None
        assert ready.id == "task-003"
        assert [task.id for task in asked.claimable()] == ["task-003"]
        counts = asked.counts()
        assert (counts.total, counts.completed, counts.permanent, counts.attempts) == (5, 1, 1, 9)
        assert store.link.mirrored == 11 << OLD_BITS
        assert store.log_tail() == ["line of change 11", "line of change 12"]
        with store.transaction() as tx:
            tx.add([Task("task-006", "Again")])
            tx.log("WARN", "said", session=0)
        assert store.ask().tasks(["task-006"])[0].fence == 9
        assert [line.rpartition(" ")[2] for line in store.log_tail()] == ["11", "12", "said"]


def to_version_3(shared: Shared) -> None:
    """Take from the tables what version 4 has brought: a document says all of a task, and proposals, too."""
    with psycopg.connect(shared.server, autocommit=True) as conn:
        query = "select id, document, brief, validation, on_failure from harness."
        for table in ("task", "proposal"):
            found = conn.execute(f"{query}{table}".encode()).fetchall()
            tasks = [(codec.written(columns.decoded(*texts)), name) for name, *texts in found]
            if table == "task":
                for document, name in tasks:
                    conn.execute(
                        "update harness.task set document = %s where id = %s", (json.dumps(document), name)
                    )
            else:
                proposals = json.dumps([document for document, _ in tasks])
                conn.execute(
                    "update harness.list set shell = shell::jsonb || "
                    "jsonb_build_object('proposals', %s::jsonb)",
                    (proposals,),
                )
        conn.execute(
            "drop table harness.proposal, harness.member; drop function harness.lists, harness.count_needs;"
            "alter table harness.task drop brief, drop validation, drop on_failure, drop ending, drop login;"
            "alter table harness.event drop login; update harness.about set version = 3, reads = 2"
        )


def to_version_2(shared: Shared) -> None:
    """Take from the tables what version 3 has brought, too."""
    to_version_3(shared)
    count = migrations.text_of(2).partition("create function harness.count_tasks")[2].partition("$$;")[0]
    with psycopg.connect(shared.server, autocommit=True) as conn:
        conn.execute(f"create or replace function harness.count_tasks{count}$$".encode())
        for table in ("task", "tally"):
            conn.execute(f"alter table harness.{table} drop runs".encode())
        conn.execute("alter table harness.task drop proof; update harness.about set version = 2")


def test_what_version_3_finds_a_task_by_is_filled_in(shared: Shared) -> None:
    """A task from before is found by its check, and counts as one with the commands that it has."""
    done = Task("task-009", "Done", "completed", completed_commit="a" * 40, validation=Validation("make x"))
    asked = Task("task-010", "Same", validation=done.validation, started_at_commit="a" * 40)
    with shared.apart():
        store = shared.with_tasks()
        with store.transaction() as tx:
            tx.add([done._replace(completed_at="2025-07-01T10:00:00Z"), asked])
        before = store.ask()
        mark, passed = before.commands_mark(), before.passed(asked)
        assert passed is not None
        to_version_2(shared)
        assert migrations.upgrade(shared.server) == 2
        again = shared.machine("second").ask()
        assert (again.commands_mark(), again.passed(asked)) == (mark, passed)
        with store.transaction() as tx:
            tx.remove(asked.id)
        assert store.ask().commands_mark() != mark


def test_what_version_4_keeps_in_columns_is_filled_in(shared: Shared) -> None:
    """Nothing of a task or a proposal is lost, and an earlier harness takes no part for the whole."""
    task = Task("task-003", "Work", validation=Validation("make x"), notes=("x",), extra={"x-mine": [1]})
    with shared.apart():
        store = shared.with_tasks()
        with store.transaction() as tx:
            tx.add([task])
            tx.propose(task._replace(id="proposed-1"))
        before = store.whole()
        to_version_3(shared)
        assert migrations.upgrade(shared.server) == 3
        assert store.whole() == before
        assert store.whole().proposals == (task._replace(id="proposed-1"),)
        with psycopg.connect(shared.server) as conn:
            assert conn.execute("select reads from harness.about").fetchone() == (4,)


def test_what_is_only_shown_changes_nothing(shared: Shared, tmp_path: Path) -> None:
    root = Root(tmp_path.resolve() / "one")
    root.path.mkdir()
    with shared.apart():
        as_version_1(shared, root)
        later = [migrations.text_of(version) for version in range(2, SCHEMA + 1)]
        assert migrations.texts(migrations.present(shared.server)) == "\n".join(later)
        assert migrations.present(shared.server) == 1


def test_an_earlier_harness_is_told_what_it_needs(shared: Shared) -> None:
    """It reads these columns before it compares the versions."""
    store = shared.with_tasks()
    with psycopg.connect(shared.server) as conn:
        row = conn.execute(
            "select key, uuid::text, version, reshaped, shell, (select max(version) from harness.about) "
            "from harness.list where name = %s",
            (shared.name,),
        ).fetchone()
        assert row is not None
        assert row[-1] == SCHEMA
        found = conn.execute(
            "select document from harness.task where list = %s and changed > -1 order by place", (row[0],)
        )
        assert len(found.fetchall()) == 2
    assert isinstance(store, PgStore)

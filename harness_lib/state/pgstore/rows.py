"""Read a list from its rows, and write what has changed of it.

All functions work inside a transaction of their caller and raise `psycopg.Error`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg

from harness_lib.state import codec
from harness_lib.task import State
from harness_lib.text import escape

Connection = psycopg.Connection[tuple[Any, ...]]
Read = TypeVar("Read")

# A forgotten transaction must not hold up the others; in milliseconds.
LIMITS = {"statement_timeout": 10_000, "idle_in_transaction_session_timeout": 10_000}


class Version(NamedTuple):
    """A list as it was after its change number `number`."""

    number: int
    state: State
    now: datetime


def begin(conn: Connection, *, writes: bool, lock_seconds: float = 0.0) -> None:
    """Begin a transaction; one that only reads sees one moment."""
    conn.execute("begin" if writes else "begin isolation level repeatable read read only")
    limits = {**LIMITS, "lock_timeout": max(1, int(lock_seconds * 1000))} if writes else LIMITS
    for name, value in limits.items():
        conn.execute("select set_config(%s, %s, true)", (name, f"{value}ms"))


def create(conn: Connection, name: str, state: State) -> bool:
    """Insert an empty list called `name`; return False if there is one."""
    shell = _text(codec.encode_shell(state))
    made = conn.execute(
        "insert into harness.list (name, shell) values (%s, %s) on conflict (name) do nothing returning key",
        (name, shell),
    )
    return made.fetchone() is not None


def number(conn: Connection, name: str) -> int | None:
    """Return the number of the last change of the list; None if there is no such list."""
    row = conn.execute("select version from harness.list where name = %s", (name,)).fetchone()
    return None if row is None else int(row[0])


def read(conn: Connection, name: str, known: Version | None, *, lock: bool = False) -> Version | None:
    """Return the list called `name`, of which `known` may be an earlier version; None if there is none.

    `lock`: nobody else may change it until the transaction ends.
    """
    row = conn.execute(
        "select key, version, reshaped, shell, clock_timestamp() from harness.list where name = %s"
        + (" for update" if lock else ""),
        (name,),
    ).fetchone()
    if row is None:
        return None
    key, version, reshaped, shell, now = row
    if known is not None and known.number == version:
        return known._replace(now=now)
    since = known.number if known is not None and reshaped <= known.number else None
    changed = conn.execute(
        "select document from harness.task where list = %s and changed > %s order by place",
        (key, -1 if since is None else since),
    ).fetchall()
    documents = [json.loads(text) for (text,) in changed]
    if known is None or since is None:
        return Version(version, codec.decode({**json.loads(shell), "tasks": documents}, name), now)
    tasks = {task.id: task for task in known.state.tasks}
    tasks |= {task.id: task for task in map(codec.decode_task, documents)}
    state = codec.decode({**json.loads(shell), "tasks": []}, name)
    return Version(version, state._replace(tasks=tuple(tasks.values())), now)


def write(conn: Connection, name: str, old: Version, new: State, lines: Sequence[str], op: UUID) -> int:
    """Write what `new` has otherwise than `old`, and the lines of the log; return the number of the change."""
    found = conn.execute("select key from harness.list where name = %s", (name,)).fetchone()
    assert found is not None, "BUG: a list that is locked was removed."
    key, version = found[0], old.number + 1
    gone = {task.id for task in old.state.tasks} - {task.id for task in new.tasks}
    if gone:
        conn.execute("delete from harness.task where list = %s and id = any(%s)", (key, list(gone)))
    rows = [
        (key, new.tasks[place].id, place, version, _text(codec.encode_task(new.tasks[place])))
        for place in new.changed_since(old.state)
    ]
    if rows:
        with conn.cursor() as cursor:
            cursor.executemany(
                "insert into harness.task (list, id, place, changed, document) values (%s, %s, %s, %s, %s) "
                "on conflict (list, id) do update "
                "set place = excluded.place, changed = excluded.changed, document = excluded.document",
                rows,
            )
    conn.execute(
        "update harness.list set version = %s, shell = %s, reshaped = case when %s then %s else reshaped end "
        "where key = %s",
        (version, _text(codec.encode_shell(new)), bool(gone), version, key),
    )
    machine = os.uname().nodename
    with conn.cursor() as cursor:
        cursor.executemany(
            "insert into harness.event (list, version, number, op, machine, line) values (%s, %s, %s, %s, %s, %s)",
            [
                (key, version, place, op, machine, None if line is None else _plain(line))
                for place, line in enumerate(lines or [None])
            ],
        )
    return version


def has_happened(conn: Connection, op: UUID) -> bool:
    """Return whether the change called `op` was made."""
    return conn.execute("select from harness.event where op = %s limit 1", (op,)).fetchone() is not None


def lines_since(conn: Connection, name: str, since: int, until: int) -> list[str]:
    """Return the lines of the log from the changes after `since` up to `until`."""
    found = conn.execute(
        "select line from harness.event join harness.list on list.key = event.list "
        "where list.name = %s and event.version > %s and event.version <= %s and line is not null "
        "order by event.version, event.number",
        (name, since, until),
    )
    return [line for (line,) in found.fetchall()]


def _text(document: dict[str, Any]) -> str:
    # ASCII: NUL and half surrogates, which a title may have, stay escapes, and PostgreSQL takes no others.
    return json.dumps(document)


def _plain(line: str) -> str:
    return escape(line).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")

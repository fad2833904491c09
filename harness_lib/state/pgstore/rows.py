"""Read a list from its rows, and write what has changed of it.

All functions work inside a transaction of their caller and raise `psycopg.Error`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.errors import SerializationFailure

from harness_lib import sha256
from harness_lib.state import codec
from harness_lib.state.pgstore.connecting import Connection
from harness_lib.system.processes import owner
from harness_lib.task import State, Task
from harness_lib.text import escape

# A forgotten transaction must not hold up the others; in milliseconds.
STATEMENT_MS = 10_000
LINES = 10_000
# More than a list has tasks: what is added later has a higher place, whatever was removed.
_MOST = 10_000_000
_LONG_ID = 200

_READ = """
select key, uuid::text, version, reshaped, shell, clock_timestamp(), (select max(version) from harness.about)
from harness.list where name = %s
"""
_PUT_TASK = """
insert into harness.task as old (list, id, place, changed, fence, document) values (%s, %s, %s, %s, %s, %s)
on conflict (list, id) do update
set changed = excluded.changed, fence = excluded.fence, document = excluded.document
where old.fence <= excluded.fence
"""
_PUT_LIST = """
update harness.list
set version = %(version)s, shell = %(shell)s,
  reshaped = case when %(shrinks)s then %(version)s else reshaped end
where key = %(key)s
"""
_PUT_EVENT = (
    "insert into harness.event (list, version, number, op, machine, line) values (%s, %s, %s, %s, %s, %s)"
)
_LINES = """
select line from (
  select version, number, line from harness.event
  where list = %s and version > %s and version <= %s and line is not null
  order by version desc, number desc limit %s
) as newest order by version, number
"""
_MACHINES = (
    "select machine, max(at), count(*) from harness.event where list = %s group by 1 order by 2 desc limit 50"
)


class Version(NamedTuple):
    """A list as it was after its change number `number`; `schema` is the version of the tables."""

    number: int
    state: State
    now: datetime
    key: int = 0
    uuid: str = ""
    schema: int | None = None
    reshaped: int = 0

    def follows(self, earlier: Version) -> bool:
        """Return whether all tasks of `earlier` are still in their places."""
        return self.key == earlier.key and self.reshaped <= earlier.number <= self.number


def begin(conn: Connection, *, writes: bool, lock_seconds: float = 0.0) -> None:
    """Begin a transaction; one that only reads sees one moment.

    The limits count for it alone, so that a pooler may give the connection to somebody else after it.
    """
    kind = "read committed" if writes else "repeatable read read only"
    conn.execute(f"begin isolation level {kind}".encode())
    lock = max(1, int(lock_seconds * 1000))
    # Waiting for a lock counts as part of the statement, too.
    limits = {
        "statement_timeout": STATEMENT_MS + (lock if writes else 0),
        "lock_timeout": lock if writes else STATEMENT_MS,
        "idle_in_transaction_session_timeout": STATEMENT_MS,
    }
    calls = ", ".join("set_config(%s, %s, true)" for _ in limits)
    conn.execute(
        f"select {calls}".encode(), [word for name, value in limits.items() for word in (name, f"{value}ms")]
    )


def create(conn: Connection, name: str, state: State) -> bool:
    """Insert an empty list called `name`; return False if there is one."""
    made = conn.execute(
        "insert into harness.list (name, shell) values (%s, %s) on conflict (name) do nothing returning key",
        (name, _text(codec.encode_shell(state))),
    )
    return made.fetchone() is not None


def read(conn: Connection, name: str, known: Version | None, *, lock: bool = False) -> Version | None:
    """Return the list called `name`, of which `known` may be an earlier version; None if there is none.

    `lock`: nobody else may change it until the transaction ends.
    """
    row = conn.execute((_READ + ("for update of list" if lock else "")).encode(), (name,)).fetchone()
    if row is None:
        return None
    key, uuid, number, reshaped, shell, now, schema = row
    about = {"now": now, "key": key, "uuid": uuid, "schema": schema, "reshaped": reshaped}
    if known is not None and (known.key, known.number) == (key, number):
        return known._replace(**about)
    follows = known is not None and known.key == key and reshaped <= known.number < number
    changed = conn.execute(
        "select document from harness.task where list = %s and changed > %s order by place",
        (key, known.number if known is not None and follows else -1),
    ).fetchall()
    documents = [json.loads(text) for (text,) in changed]
    if known is None or not follows:
        return Version(number, codec.decode({**json.loads(shell), "tasks": documents}, name), **about)
    tasks = {task.id: task for task in known.state.tasks}
    tasks |= {task.id: task for task in map(codec.decode_task, documents)}
    state = codec.decode({**json.loads(shell), "tasks": []}, name)
    return Version(number, state._replace(tasks=tuple(tasks.values())), **about)


def write(conn: Connection, old: Version, new: State, lines: Sequence[str | None], op: UUID) -> Version:
    """Write what `new` has otherwise than `old`, and the lines of the log; return the new version.

    Raises SerializationFailure if the fence of a task would fall: somebody has written without the lock.
    """
    number = old.number + 1
    tasks = list(new.tasks)
    before = {task.id: task for task in old.state.tasks}
    after = {task.id for task in tasks}
    places = new.changed_since(old.state)
    if [each for each in before if each in after] != [task.id for task in tasks if task.id in before]:
        # In another order all of them begin anew.
        gone, before, places = list(old.state.tasks), {}, list(range(len(tasks)))
    else:
        gone = [before[task_id] for task_id in before.keys() - after]
    if gone:
        _remove(conn, old.key, gone)
    fences = _fences(conn, old.key, [tasks[place].id for place in places if tasks[place].id not in before])
    for place in places:
        least = fences.get(_key(tasks[place].id), 0)
        if tasks[place].fence < least:
            tasks[place] = tasks[place]._replace(fence=least)
    rows = [
        (old.key, _key(task.id), number * _MOST + place, number, task.fence, _text(codec.encode_task(task)))
        for place in places
        for task in (tasks[place],)
    ]
    with conn.cursor() as cursor:
        if rows:
            cursor.executemany(_PUT_TASK, rows)
            if cursor.rowcount != len(rows):
                raise SerializationFailure("the fence of a task would fall")
        shell = _text(codec.encode_shell(new))
        cursor.execute(_PUT_LIST, {"version": number, "shell": shell, "shrinks": bool(gone), "key": old.key})
        machine = _plain(owner.machine(os.environ))
        texts = [None if line is None else _plain(line) for line in lines or (None,)]
        cursor.executemany(
            _PUT_EVENT, [(old.key, number, place, op, machine, text) for place, text in enumerate(texts)]
        )
    return old._replace(number=number, state=new._replace(tasks=tuple(tasks)))


def _remove(conn: Connection, key: int, gone: Sequence[Task]) -> None:
    ids = [_key(task.id) for task in gone]
    conn.execute("delete from harness.task where list = %s and id = any(%s)", (key, ids))
    keep_fences(conn, key, gone)


def keep_fences(conn: Connection, key: int, gone: Sequence[Task]) -> None:
    """Let a later task that has the id of one of `gone` begin with its fence."""
    with conn.cursor() as cursor:
        cursor.executemany(
            "insert into harness.removed as old (list, id, fence) values (%s, %s, %s) "
            "on conflict (list, id) do update set fence = greatest(old.fence, excluded.fence)",
            [(key, _key(task.id), task.fence) for task in gone],
        )


def _fences(conn: Connection, key: int, added: Sequence[str]) -> dict[str, int]:
    """Return the fences that tasks of the ids `added` had when they were removed earlier."""
    if not added:
        return {}
    found = conn.execute(
        "select id, fence from harness.removed where list = %s and id = any(%s)",
        (key, [_key(task_id) for task_id in added]),
    )
    return {task_id: int(fence) for task_id, fence in found.fetchall()}


def reshape(conn: Connection, key: int) -> None:
    """Let everybody read the whole list anew."""
    conn.execute("update harness.list set reshaped = version where key = %s", (key,))


def has_happened(conn: Connection, op: UUID) -> bool:
    """Return whether the change called `op` was made; its list is locked, so it is not under way any more."""
    return conn.execute("select from harness.event where op = %s limit 1", (op,)).fetchone() is not None


def lines_since(conn: Connection, key: int, since: int, until: int) -> list[str]:
    """Return the lines of the log from the changes after `since` up to `until`, at most the last 10,000."""
    return [line for (line,) in conn.execute(_LINES, (key, since, until, LINES)).fetchall()]


def machines(conn: Connection, key: int) -> list[tuple[str, datetime, int]]:
    """Return the machines that have changed the list: the last time, and how many lines are theirs."""
    return [(name, at, count) for name, at, count in conn.execute(_MACHINES, (key,)).fetchall()]


def _key(task_id: str) -> str:
    """Return `task_id` for a column that is indexed: no NUL, no half surrogate, not long."""
    key = json.dumps(task_id)[1:-1]
    return key if len(key) <= _LONG_ID else sha256.digest(key.encode())


def _text(document: dict[str, Any]) -> str:
    # ASCII: NUL and half surrogates, which a title may have, stay escapes, and PostgreSQL takes no others.
    return json.dumps(document)


def _plain(line: str) -> str:
    return escape(line).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")

"""The rows of the tasks of a list: what each column says; find them, and write those that have changed.

Each field of a task is in the column of whoever may write it. Whatever asks the database works inside a
transaction of its caller and raises `psycopg.Error`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

from psycopg.errors import DivisionByZero

from harness_lib import sha256, timestamps
from harness_lib.rules import graph, rechecks, selection
from harness_lib.state import api, codec, reading
from harness_lib.state.pgstore.connecting import Connection, Cursor, changed_meanwhile
from harness_lib.task import Task

# How many tasks one statement inserts.
BATCH = 1000
_LONG_ID = 200
# Columns that only authors of a list may change, and workers, too. All but the texts are what a task is found
# and counted by. A new field that runs as a command needs a column of its own.
OF_AUTHORS = {
    "brief": "text",
    "validation": "text",
    "on_failure": "text",
    "sort_key": "bytea",
    "priority": "smallint",
    "runs": "bigint",
}
OF_WORKERS = {
    "fence": "bigint",
    "document": "text",
    "status": "text",
    "open": "boolean",
    "retry": "boolean",
    "since": "float8",
    "done": "boolean",
    "dead": "boolean",
    "doubted": "boolean",
    "unproven": "boolean",
    "halted": "boolean",
    "red": "boolean",
    "noted": "boolean",
    "ending": "boolean",
    "completed_at": "text",
    "worker": "text",
    "lease": "timestamptz",
    "attempts": "bigint",
    "checkpoints": "int",
    "proof": "bigint",
}
TYPES = OF_AUTHORS | OF_WORKERS
_COMMANDS = ("validation", "on_failure")
# What says all of a task.
TEXTS = ("document", "brief", *_COMMANDS)
_BRIEF = ("id", "title", "priority", "depends_on", "max_attempts", "description", "source", "repairs")
_AUTHORS = frozenset((*_COMMANDS, *_BRIEF))
_WORKERS = frozenset(Task._fields) - _AUTHORS

_KEEP_FENCES = """
insert into harness.removed as old (list, id, fence) select %s, * from unnest(%s::text[], %s::bigint[])
on conflict (list, id) do update set fence = greatest(old.fence, excluded.fence)
"""
# The new edges decide: a ring that was there before is known.
_CLOSES_RING = """
with recursive reached (list, first, id) as (
  select list, task, needs from harness.dep where list = %s and task = any(%s)
  union
  select dep.list, reached.first, dep.needs
  from reached join harness.dep on dep.list = reached.list and dep.task = reached.id
)
select exists(select from reached where first = id)
"""
_LACKS_NEEDS = """
select exists(
  select from harness.dep where list = %s and (task = any(%s) or needs = any(%s))
    and not exists(select from harness.task as other where other.list = dep.list and other.id = dep.needs)
)
"""
_ADD = f"""
insert into harness.task (list, id, place, {", ".join(TYPES)})
select %(list)s, * from unnest(%(id)s::text[], %(place)s::bigint[],
  {", ".join(f"%({name})s::{kind}[]" for name, kind in TYPES.items())})
""".encode()
# Dividing by zero is how it fails in the middle of a pipeline, so that nothing after it is done.
_CHANGES = [
    f"""
with done as (update harness.task set {", ".join(f"{name} = %({name})s" for name in names)},
  ver = ver + 1, touched = pg_current_xact_id()
where list = %(list)s and id = %(id)s and ver = %(ver)s and fence <= %(fence)s returning 1)
select 1 / count(*) from done
""".encode()
    for names in (OF_WORKERS, TYPES)
]


def tasks_of(found: Cursor) -> list[tuple[Task, int]]:
    """Return the tasks of the rows that `selected` asks for, each with the `ver` of its row."""
    return [(decoded(*texts, name=name), ver) for ver, name, *texts in found.fetchall()]


def selected(conn: Connection, query: str, *values: object) -> Cursor:
    """Ask for the rows of the tasks that `query`, what follows `where`, finds."""
    return conn.execute(
        f"select ver, id, document, brief, validation, on_failure from harness.task where {query}".encode(),
        values,
    )


def of(task: Task) -> dict[str, Any]:
    """Return the values of `TYPES` for a task that keeps the contract."""
    retry, dead = task.status == "failed", selection.is_permanent(task)
    is_open = task.halt is None and (task.status == "pending" or (retry and not dead))
    since = timestamps.parse(task.failed_at).timestamp() if retry and task.failed_at else float("-inf")
    lease = task.lease_expires_at
    return {
        "fence": task.fence,
        **texts_of(task),
        "sort_key": sort_key(task.id),
        "status": task.status,
        "open": is_open,
        "retry": retry,
        "priority": int(task.priority[1:]),
        "since": since,
        "done": task.is_done,
        "dead": dead,
        "doubted": task.status == "completed" and task.unproven,
        "unproven": task.unproven,
        "halted": task.halt is not None and task.status != "completed",
        "red": rechecks.is_red(task),
        "noted": bool(task.notes),
        "ending": task.intent is not None,
        "completed_at": task.completed_at or "",
        "worker": None if task.claimed_by is None else text_key(task.claimed_by),
        "lease": None if lease is None else timestamps.parse(lease),
        "attempts": task.attempts,
        "checkpoints": len(task.checkpoints),
        "runs": api.TaskCommands.number(task),
        "proof": rechecks.proof(task, rechecks.passed_on(task)),
    }


def texts_of(task: Task) -> dict[str, str]:
    """Return the columns that say all of a task. Unknown keys are in two: those of the brief count."""
    # ASCII: NUL and half surrogates, which a title may have, stay escapes, and PostgreSQL takes no others.
    document = reading.written(task)
    # Sorted: equal commands are equal texts.
    texts = {name: json.dumps(document.pop(name), sort_keys=True) for name in _COMMANDS}
    brief = {name: document.pop(name) for name in _BRIEF if name in document}
    return {**texts, "brief": json.dumps(brief | dict(task.extra)), "document": json.dumps(document)}


def is_rewritten(old: Task, new: Task) -> bool:
    """Return whether only an author may make `new` out of `old`."""
    before, after = texts_of(old), texts_of(new)
    return any(before[name] != after[name] for name in ("brief", *_COMMANDS))


def decoded(document: str, brief: str, validation: str, on_failure: str, *, name: str = "") -> Task:
    """Return the task of a row, whose key is `name`, with each field from its own column.

    Raises ContractError.
    """
    row = f"task {name}".strip()
    theirs, mine = parsed(document, row), parsed(brief, row)
    whole = {key: value for key, value in theirs.items() if key not in _AUTHORS}
    whole |= {key: value for key, value in mine.items() if key not in _WORKERS}
    whole |= {"validation": parsed(validation, row), "on_failure": parsed(on_failure, row)}
    task = codec.decode_task(whole, row)
    return task if name in ("", text_key(task.id)) else task._replace(id=name)


def parsed(text: str, row: str) -> dict[str, Any]:
    """Return the object that `text` of the row called `row` says. Raises ContractError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise codec.ContractError([reading.Problem("", f"is no object: {error}")], row) from error
    if type(document) is not dict:
        raise codec.ContractError(
            [reading.Problem("", f"is {reading.show(document)}, must be an object")], row
        )
    return document


def sort_key(task_id: str) -> bytes:
    """Return bytes that are in the order of `graph.id_key`."""
    chunks, whole = graph.id_key(task_id)
    parts = [
        _raw(text).replace(b"\0", b"\0\xff") + b"\0\1" + struct.pack(">I", length) + digits.encode()
        for text, length, digits in chunks
    ]
    return b"".join(parts) + _raw(whole)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def text_key(text: str) -> str:
    """Return `text` for a column that is indexed: no NUL, no half surrogate, not long."""
    key = json.dumps(text)[1:-1]
    return key if len(key) <= _LONG_ID else sha256.digest(key.encode())


class Rows(NamedTuple):
    """The list `key` as `conn` sees and writes it."""

    conn: Connection
    key: int

    def ask(self, query: str, *values: object) -> Cursor:
        """Send `query`, whose first value is the list."""
        return self.conn.execute(query.encode(), (self.key, *values))

    def put(self, what: str, *values: object) -> None:
        """Write `what`, columns with their values, into the row of the list itself."""
        self.conn.execute(f"update harness.list set {what} where key = %s".encode(), (*values, self.key))

    def tasks(self, query: str, *values: object) -> list[tuple[Task, int]]:
        """Return the tasks that `query` finds in the list, each with the `ver` of its row."""
        return tasks_of(selected(self.conn, f"list = %s and {query}", self.key, *values))

    def value(self, query: str, *values: object) -> Any:
        """Return the one value that `query` asks for of the list; it always has a row."""
        row = self.ask(query, *values).fetchone()
        assert row is not None, f"BUG: no row of {query}"
        return row[0]

    def changed(self, since: int) -> tuple[Task, ...]:
        """Return the tasks that transactions from the number `since` on have changed, in their order."""
        return tuple(task for task, _ in self.tasks("touched >= %s::text::xid8 order by place", str(since)))

    def add(self, added: Sequence[Task]) -> None:
        """Append tasks to the list; one whose id was removed before goes on from its fence then."""
        ids = [text_key(task.id) for task in added]
        spent = self.ask("select id, fence from harness.removed where list = %s and id = any(%s)", ids)
        fences: dict[str, int] = dict(spent.fetchall())
        first = self.value("select coalesce(max(place) + 1, 0) from harness.task where list = %s")
        for start in range(0, len(added), BATCH):
            names = ids[start : start + BATCH]
            values = [
                of(task._replace(fence=max(task.fence, fences.get(name, 0))))
                for task, name in zip(added[start : start + BATCH], names, strict=True)
            ]
            found = {name: [each[name] for each in values] for name in TYPES}
            places = list(range(first + start, first + start + len(names)))
            self.conn.execute(_ADD, {**found, "list": self.key, "id": names, "place": places})
        self.put_edges([task for task in added if task.depends_on], new=True)

    def change(
        self,
        changed: Sequence[tuple[Task, int]],
        rewritten: Container[str] = (),
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """Replace tasks, each with the `ver` of what it replaces, and send what `then` does with them.

        `rewritten`: the ids of those that only authors may change so.

        Raises BusyError if another process changed one, or the fence of one would fall: then nothing of the
        transaction is left.
        """
        try:
            with self.conn.pipeline():
                for task, ver in changed:
                    values = {**of(task), "list": self.key, "id": text_key(task.id), "ver": ver}
                    self.conn.execute(_CHANGES[task.id in rewritten], values)
                then()
        except DivisionByZero:
            self.conn.rollback()
            for task, ver in changed:
                query = "select from harness.task where list = %s and id = %s and ver = %s and fence <= %s"
                if self.ask(query, text_key(task.id), ver, task.fence).fetchone() is None:
                    raise changed_meanwhile(task.id) from None
            raise

    def put_edges(self, changed: Sequence[Task], *, new: bool = False) -> None:
        """Write what the tasks, which may be `new`, depend on, and whether that may close a ring."""
        if not changed:
            return
        ids = [text_key(task.id) for task in changed]
        if not new:
            self.ask("delete from harness.dep where list = %s and task = any(%s)", ids)
        edges = [
            (text_key(task.id), text_key(name)) for task in changed for name in dict.fromkeys(task.depends_on)
        ]
        query = "insert into harness.dep (list, task, needs) select %s, * from unnest(%s::text[], %s::text[])"
        self.ask(query, [task for task, _ in edges], [name for _, name in edges])
        self.count_needs(ids)
        if self.value(_CLOSES_RING, ids):
            self.put("cyclic = true")

    def count_needs(self, ids: list[str]) -> None:
        """Count what the tasks with these keys wait for."""
        self.ask("select harness.count_needs(%s, %s)", ids)

    def remove(self, gone: Sequence[Task]) -> None:
        """Remove tasks, and keep their fences."""
        ids = [text_key(task.id) for task in gone]
        self.ask("delete from harness.task where list = %s and id = any(%s)", ids)
        self.ask("delete from harness.dep where list = %s and task = any(%s)", ids)
        self.keep_fences(gone)
        self.reshape()

    def keep_fences(self, gone: Iterable[Task]) -> None:
        """Let a later task that has the id of one of `gone` begin with its fence."""
        gone = list(gone)
        self.ask(_KEEP_FENCES, [text_key(task.id) for task in gone], [task.fence for task in gone])

    def reshape(self) -> None:
        """Let everybody read the whole list anew."""
        self.put("reshaped = nextval(pg_get_serial_sequence('harness.event', 'seq'))")

    def lacks_needs(self, changed: Iterable[str], gone: Iterable[str]) -> bool:
        """Return whether a task depends on one that does not exist.

        `changed`: the ids of tasks that depend on others than before, `gone`: those of removed tasks.
        """
        changed, gone = ([*map(text_key, names)] for names in (changed, gone))
        return bool(self.value(_LACKS_NEEDS, changed, gone))

    def raise_fences(self, seen: Iterable[Task]) -> None:
        """Let no task have a lower fence than in `seen`, also if it comes back later."""
        there = {task.id: (task, ver) for task, ver in self.tasks("true")}
        higher = []
        for was in seen:
            task, ver = there.get(was.id, (None, 0))
            if task and task.fence < was.fence:
                higher.append((codec.sealed_task(task._replace(fence=was.fence)), ver))
        self.change(higher)
        self.keep_fences(task for task in seen if task.id not in there)

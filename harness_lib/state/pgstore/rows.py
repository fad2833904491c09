"""The rows of a list: read them, and write those that have changed.

All functions work inside a transaction of their caller and raise `psycopg.Error`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterable, Sequence

from psycopg.errors import DivisionByZero, UniqueViolation

import harness_lib
from harness_lib.state import codec, reading
from harness_lib.state.pgstore import columns
from harness_lib.state.pgstore.connecting import Connection, Cursor, changed_meanwhile
from harness_lib.system.processes import owner
from harness_lib.task import Session, State, Task
from harness_lib.text import escape

# How many tasks one statement inserts.
BATCH = 1000

TALLY = (
    *("total", "completed", "failed", "pending", "in_progress"),
    *("blocked", "permanent", "red", "attempts", "checkpoints", "runs"),
)
_SUMS = (
    f"select {', '.join(f'coalesce(sum({name}), 0)' for name in TALLY)} from harness.tally where list = %s"
)
_PUT_EVENTS = """
insert into harness.event (list, op, machine, harness, line) select %s, %s, %s, %s, line
from unnest(%s::text[]) with ordinality as lines (line, place) order by place
"""
_KEEP_FENCES = """
insert into harness.removed as old (list, id, fence) select %s, * from unnest(%s::text[], %s::bigint[])
on conflict (list, id) do update set fence = greatest(old.fence, excluded.fence)
"""
_PROPOSE = """
insert into harness.proposal (list, id, brief, validation, on_failure, document)
values (%(list)s, %(id)s, %(brief)s, %(validation)s, %(on_failure)s, %(document)s)
"""
# The new edges decide: a ring that was there before is known.
_CLOSES_RING = """
with recursive reached (first, id) as (
  select task, needs from harness.dep where list = %(list)s and task = any(%(ids)s)
  union
  select reached.first, dep.needs
  from reached join harness.dep on dep.list = %(list)s and dep.task = reached.id
)
select exists(select from reached where first = id)
"""
_LACKS_NEEDS = """
select exists(
  select from harness.dep where list = %(list)s and (task = any(%(changed)s) or needs = any(%(gone)s))
    and not exists(select from harness.task as other where other.list = dep.list and other.id = dep.needs)
)
"""


def create(conn: Connection, name: str, state: State) -> bool:
    """Insert a list called `name` with what `state` has besides tasks and sessions; False if there is one."""
    values = (name, shell_text(state), state.session_count, state.last_session, state.attempts_reset)
    try:
        conn.execute(
            "insert into harness.list (name, shell, session_count, last_session, attempts_reset) "
            "values (%s, %s, %s, %s, %s)",
            values,
        )
    except UniqueViolation:
        return False
    return True


def shell_text(state: State) -> str:
    """Return the text of a list without its tasks and open sessions."""
    rest = state._replace(sessions=(), session_count=0, last_session=None, attempts_reset=0, proposals=())
    return json.dumps(reading.encode_shell(rest))


def tasks(conn: Connection, query: str, *values: object) -> list[tuple[Task, int]]:
    """Return the tasks that `query`, what follows `where`, finds, each with the `ver` of its row."""
    return decoded(select(conn, query, *values))


def select(conn: Connection, query: str, *values: object) -> Cursor:
    """Ask for what `decoded` makes the answer of `tasks` from."""
    return conn.execute(
        f"select ver, id, document, brief, validation, on_failure from harness.task where {query}".encode(),
        values,
    )


def decoded(found: Cursor) -> list[tuple[Task, int]]:
    """Return what `tasks` does, once the answer is there."""
    return [(columns.decoded(*texts, name=name), ver) for ver, name, *texts in found.fetchall()]


def changed(conn: Connection, key: int, since: int) -> tuple[Task, ...]:
    """Return the tasks that transactions from the number `since` on have changed, in their order."""
    found = tasks(conn, "list = %s and touched >= %s::text::xid8 order by place", key, str(since))
    return tuple(task for task, _ in found)


def sessions(conn: Connection, key: int) -> tuple[Session, ...]:
    """Return the open sessions."""
    found = conn.execute("select document from harness.session where list = %s order by place", (key,))
    return sessions_of([document for (document,) in found.fetchall()])


def sessions_of(documents: Iterable[str]) -> tuple[Session, ...]:
    """Return the sessions whose texts these are. Raises ContractError."""
    found = [columns.parsed(text, "an open session") for text in documents]
    return codec.decode({"tasks": [], "sessions": found}, "open sessions").sessions or ()


def tally(conn: Connection, key: int) -> dict[str, int]:
    """Return the sums of the tally, by their names in `TALLY`."""
    row = conn.execute(_SUMS.encode(), (key,)).fetchone()
    assert row is not None
    return dict(zip(TALLY, map(int, row), strict=True))


# -- writing ----------------------------------------------------------------------------------------------


_ADD = f"""
insert into harness.task (list, id, place, {", ".join(columns.TYPES)})
select %(list)s, * from unnest(%(id)s::text[], %(place)s::bigint[],
  {", ".join(f"%({name})s::{kind}[]" for name, kind in columns.TYPES.items())})
""".encode()
# Dividing by zero is how it fails in the middle of a pipeline, so that nothing after it is done.
_CHANGES = [
    f"""
with done as (update harness.task set {", ".join(f"{name} = %({name})s" for name in names)},
  ver = ver + 1, touched = pg_current_xact_id()
where list = %(list)s and id = %(id)s and ver = %(ver)s and fence <= %(fence)s returning 1)
select 1 / count(*) from done
""".encode()
    for names in (columns.OF_WORKERS, columns.TYPES)
]


def add(conn: Connection, key: int, added: Sequence[Task]) -> None:
    """Append tasks to the list; one whose id was removed before goes on from its fence then."""
    ids = [columns.text_key(task.id) for task in added]
    spent = conn.execute("select id, fence from harness.removed where list = %s and id = any(%s)", (key, ids))
    fences: dict[str, int] = dict(spent.fetchall())
    last = conn.execute(
        "select place from harness.task where list = %s order by place desc limit 1", (key,)
    ).fetchone()
    first = last[0] + 1 if last else 0
    for start in range(0, len(added), BATCH):
        names = ids[start : start + BATCH]
        values = [
            columns.of(_fenced(task, fences.get(name, 0)))
            for task, name in zip(added[start : start + BATCH], names, strict=True)
        ]
        found = {name: [each[name] for each in values] for name in columns.TYPES}
        places = list(range(first + start, first + start + len(names)))
        conn.execute(_ADD, {**found, "list": key, "id": names, "place": places})
    put_edges(conn, key, [task for task in added if task.depends_on], new=True)


def _fenced(task: Task, fence: int) -> Task:
    return task if task.fence >= fence else task._replace(fence=fence)


def change(
    conn: Connection,
    key: int,
    changed: Sequence[tuple[Task, int]],
    rewritten: Container[str] = (),
    then: Callable[[], None] = lambda: None,
) -> None:
    """Replace tasks, each with the `ver` of what it replaces, and send what `then` does in one round trip.

    `rewritten`: the ids of those that only authors may change so.

    Raises BusyError if another process changed one, or the fence of one would fall: then nothing of the
    transaction is left.
    """
    try:
        with conn.pipeline():
            for task, ver in changed:
                values = {**columns.of(task), "list": key, "id": columns.text_key(task.id), "ver": ver}
                conn.execute(_CHANGES[task.id in rewritten], values)
            then()
    except DivisionByZero:
        conn.rollback()
        for task, ver in changed:
            query = "select from harness.task where list = %s and id = %s and ver = %s and fence <= %s"
            mine = (key, columns.text_key(task.id), ver, task.fence)
            if conn.execute(query, mine).fetchone() is None:
                raise changed_meanwhile(task.id) from None
        raise


def put_edges(conn: Connection, key: int, changed: Sequence[Task], *, new: bool = False) -> None:
    """Write what the tasks, which may be `new`, depend on, and whether that may close a ring."""
    if not changed:
        return
    ids = [columns.text_key(task.id) for task in changed]
    if not new:
        conn.execute("delete from harness.dep where list = %s and task = any(%s)", (key, ids))
    edges = [
        (columns.text_key(task.id), columns.text_key(name))
        for task in changed
        for name in dict.fromkeys(task.depends_on)
    ]
    conn.execute(
        "insert into harness.dep (list, task, needs) select %s, * from unnest(%s::text[], %s::text[])",
        (key, [task for task, _ in edges], [name for _, name in edges]),
    )
    count_needs(conn, key, ids)
    row = conn.execute(_CLOSES_RING, {"list": key, "ids": ids}).fetchone()
    if row is not None and row[0]:
        conn.execute("update harness.list set cyclic = true where key = %s", (key,))


def count_needs(conn: Connection, key: int, ids: list[str]) -> None:
    """Count what the tasks with these keys wait for."""
    conn.execute("select harness.count_needs(%s, %s)", (key, ids))


def remove(conn: Connection, key: int, gone: Sequence[Task]) -> None:
    """Remove tasks, and keep their fences."""
    ids = [columns.text_key(task.id) for task in gone]
    conn.execute("delete from harness.task where list = %s and id = any(%s)", (key, ids))
    conn.execute("delete from harness.dep where list = %s and task = any(%s)", (key, ids))
    keep_fences(conn, key, gone)
    reshape(conn, key)


def keep_fences(conn: Connection, key: int, gone: Iterable[Task]) -> None:
    """Let a later task that has the id of one of `gone` begin with its fence."""
    gone = list(gone)
    conn.execute(
        _KEEP_FENCES, (key, [columns.text_key(task.id) for task in gone], [task.fence for task in gone])
    )


def reshape(conn: Connection, key: int) -> None:
    """Let everybody read the whole list anew."""
    conn.execute(
        "update harness.list set reshaped = nextval(pg_get_serial_sequence('harness.event', 'seq')) "
        "where key = %s",
        (key,),
    )


def lacks_needs(conn: Connection, key: int, changed: Iterable[str], gone: Iterable[str]) -> bool:
    """Return whether a task depends on one that does not exist.

    `changed`: the ids of tasks that depend on others than before, `gone`: those of removed tasks.
    """
    changed, gone = ([*map(columns.text_key, names)] for names in (changed, gone))
    row = conn.execute(_LACKS_NEEDS, {"list": key, "changed": changed, "gone": gone}).fetchone()
    return row is not None and bool(row[0])


def raise_fences(conn: Connection, key: int, seen: Iterable[Task]) -> None:
    """Let no task have a lower fence than in `seen`, also if it comes back later."""
    there = {task.id: (task, ver) for task, ver in tasks(conn, "list = %s", key)}
    higher = []
    for was in seen:
        task, ver = there.get(was.id, (None, 0))
        if task is not None and task.fence < was.fence:
            higher.append((codec.sealed_task(task._replace(fence=was.fence)), ver))
    change(conn, key, higher)
    keep_fences(conn, key, (task for task in seen if task.id not in there))


def go_on_after(conn: Connection, number: int) -> None:
    """Let the next event have a higher number than `number`."""
    sequence = "pg_get_serial_sequence('harness.event', 'seq')"
    conn.execute(
        f"select setval({sequence}, greatest(nextval({sequence}), %s))".encode(),
        (number,),
    )


def put_session(conn: Connection, key: int, session: Session, number: int | None = None) -> None:
    """Open `session`, or put it in the place of the open session `number`."""
    document = json.dumps(reading.written(session))
    if number is None:
        query = "insert into harness.session (number, document, list) values (%s, %s, %s)"
        conn.execute(query, (session.number, document, key))
    else:
        query = "update harness.session set number = %s, document = %s where list = %s and number = %s"
        conn.execute(query, (session.number, document, key, number))


def put_proposals(conn: Connection, key: int, old: Sequence[Task], new: Sequence[Task]) -> None:
    """Write the proposals `new`, where `old` ones are."""
    gone = [columns.text_key(task.id) for task in old if task not in new]
    if gone:
        conn.execute("delete from harness.proposal where list = %s and id = any(%s)", (key, gone))
    for task in new:
        if task not in old:
            conn.execute(_PROPOSE, {**columns.texts_of(task), "list": key, "id": columns.text_key(task.id)})


def log(conn: Connection, key: int, op: str, lines: Sequence[str | None]) -> None:
    """Write the lines of the log, or without any that there was a change."""
    machine = _plain(owner.machine(os.environ))
    texts = [None if line is None else _plain(line) for line in lines or (None,)]
    conn.execute(_PUT_EVENTS, (key, op, machine, harness_lib.__version__, texts))


def _plain(line: str) -> str:
    return escape(line).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")

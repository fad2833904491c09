"""The rows of a list: read them, and write those that have changed.

All functions work inside a transaction of their caller and raise `psycopg.Error`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Container, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.errors import DivisionByZero, ReadOnlySqlTransaction, UniqueViolation

import harness_lib
from harness_lib.state import codec
from harness_lib.state.pgstore import columns
from harness_lib.state.pgstore.connecting import OWN_NAMES, Connection, Cursor, Format
from harness_lib.state.pgstore.repeating import changed_meanwhile
from harness_lib.system.processes import owner
from harness_lib.task import Session, State, Task
from harness_lib.text import escape

# A forgotten transaction must not hold up the others; in milliseconds.
STATEMENT_MS = 10_000
LINES = 10_000
# How many tasks one statement inserts.
BATCH = 1000

_READ = """
select key, uuid::text, coalesce(last.seq, 0), reshaped, cyclic, shell, session_count, last_session,
  attempts_reset, clock_timestamp(), version, reads, writes, about.harness,
  pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
  (select coalesce(sum(total), 0)::bigint from harness.tally where tally.list = list.key),
  array(select document from harness.session where session.list = list.key order by place),
  array(select array[id, document, brief, validation, on_failure] from harness.proposal
    where proposal.list = list.key order by place),
  coalesce(last.op::text, ''), %s = 0 or exists(
    select from harness.event where event.list = list.key and seq = %s and (%s = '' or op::text = %s)
  )
from harness.list cross join harness.about left join lateral (
  select seq, op from harness.event where event.list = list.key order by seq desc limit 1
) as last on true where name = %s
"""
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
_EVENTS = """
select seq, touched::text::bigint, line from (
  select seq, touched, line from harness.event
  where list = %s and touched >= %s::text::xid8 and seq > %s
  order by seq desc limit %s
) as newest order by seq
"""
_OF_NAME = "list = (select key from harness.list where name = %s)"
_EVENTS_OF = _EVENTS.replace("list = %s", _OF_NAME)
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
_UNKNOWN_NEEDS = """
select (
    select count(*) from harness.task as earlier where earlier.list = task.list and earlier.place < task.place
  ), id, document, brief, validation, on_failure
from harness.task where list = %(list)s and exists(
  select from harness.dep where dep.list = task.list and dep.task = task.id
    and (dep.task = any(%(changed)s) or dep.needs = any(%(gone)s))
    and not exists(select from harness.task as other where other.list = dep.list and other.id = dep.needs)
) order by place
"""


class Seen(NamedTuple):
    """The number of an event, and its change: after a loss others get the same numbers."""

    number: int
    op: str


NOTHING = Seen(0, "")


class Version(NamedTuple):
    """A list after the event number `number`, as one transaction sees it; `shell` has no tasks and sessions.

    `format`: that of the tables. `xmin`: all transactions with a lower number have ended. `cyclic`: there may
    be tasks that depend on themselves. `total`: how many tasks it has. `sessions`: its open ones, as text.
    `op`: the change that event `number` is of.
    `goes_on`: it has the event that was asked for.
    """

    number: int
    shell: State
    now: datetime
    key: int
    uuid: str
    format: Format
    reshaped: int
    xmin: int
    cyclic: bool
    total: int
    sessions: tuple[str, ...]
    op: str
    goes_on: bool

    def follows(self, earlier: Version) -> bool:
        """Return whether all tasks of `earlier` are still in their places."""
        same = (self.key, self.uuid, self.reshaped) == (earlier.key, earlier.uuid, earlier.reshaped)
        return same and earlier.xmin <= self.xmin and earlier.number <= self.number


def begin(conn: Connection, *, writes: bool, lock_seconds: float = 0.0) -> Cursor:
    """Begin a transaction; one that only reads sees one moment. What it returns says first if it must.

    The settings count for it alone, so that a pooler may give the connection to another client after it.
    """
    kind = "read committed" if writes else "repeatable read read only"
    conn.execute(f"begin isolation level {kind}".encode())
    lock = max(1, int(lock_seconds * 1000))
    # Waiting for a lock counts as part of the statement, too.
    settings = {
        "statement_timeout": f"{STATEMENT_MS + (lock if writes else 0)}ms",
        "lock_timeout": f"{lock if writes else STATEMENT_MS}ms",
        "idle_in_transaction_session_timeout": f"{STATEMENT_MS}ms",
        "search_path": OWN_NAMES,
        # In a long list the server would compile statements, a fifth of a second each, which find a few rows.
        "jit": "off",
    }
    calls = ", ".join("set_config(%s, %s, true)" for _ in settings)
    return conn.execute(
        f"select current_setting('transaction_read_only'), {calls}".encode(),
        [word for setting in settings.items() for word in setting],
    )


def lock(conn: Connection, uuid: str, *, shared: bool = False) -> None:
    """Wait until nobody else changes the list; `shared`: others may still change its tasks and sessions."""
    call = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    conn.execute(f"select {call}(hashtext('harness list'), hashtext(%s))".encode(), (uuid,))


def read(conn: Connection, name: str, seen: Seen = NOTHING) -> Version | None:
    """Return the list called `name`; None if there is none. `seen`: an event that it should have."""
    return _version(_read(conn, name, seen).fetchone(), name)


def _read(conn: Connection, name: str, seen: Seen) -> Cursor:
    return conn.execute(_READ, (seen.number, *seen, seen.op, name))


def begin_change(
    conn: Connection, name: str, uuid: str, seen: Seen, *, lock_seconds: float, shared: bool
) -> Version | None:
    """Begin a transaction that has locked the list, in one round trip; return what `read` does."""
    with conn.pipeline():
        begun = begin(conn, writes=True, lock_seconds=lock_seconds)
        lock(conn, uuid, shared=shared)
        found = _read(conn, name, seen)
    if (begun.fetchone() or ("on",))[0] == "on":
        raise ReadOnlySqlTransaction("the server takes no changes")
    return _version(found.fetchone(), name)


def look(
    conn: Connection, name: str, seen: Seen, mark: Mark, since: int | None = None
) -> tuple[Version | None, News, tuple[Task, ...]]:
    """Begin a transaction that sees one moment, in one round trip.

    Return what `read` does, what `Mark.news` does, and with `since` what `changed` does: then it has ended.
    """
    with conn.pipeline():
        begin(conn, writes=False)
        found = _read(conn, name, seen)
        events = conn.execute(_EVENTS_OF, (name, str(mark.since), mark.floor, LINES))
        read = None
        if since is not None:
            read = _select(conn, f"{_OF_NAME} and touched >= %s::text::xid8 order by place", name, str(since))
            conn.execute("commit")
    version = _version(found.fetchone(), name)
    changed = () if read is None else tuple(task for task, _ in _decoded(read))
    return version, mark.after(events.fetchall(), version) if version else ([], mark), changed


def _version(row: tuple[Any, ...] | None, name: str) -> Version | None:
    if row is None:
        return None
    key, uuid, number, reshaped, cyclic, shell, count, last, forgotten, now = row[:10]
    xmin, total, open_sessions, proposed, op, goes_on = row[14:]
    document = {**json.loads(shell), "tasks": [], "session_count": count, "last_session": last}
    state = codec.decode({**document, "attempts_reset": int(forgotten)}, name)
    proposals = tuple(columns.decoded(*texts, name=name) for name, *texts in proposed)
    state = state._replace(proposals=proposals)
    more = (reshaped, xmin, cyclic, total, tuple(open_sessions), op, goes_on)
    return Version(number, state, now, key, uuid, Format(*row[10:14]), *more)


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
    rest = state._replace(tasks=(), sessions=(), session_count=0, last_session=None, attempts_reset=0)
    return _text(codec.encode_shell(rest._replace(proposals=())))


def tasks(conn: Connection, query: str, *values: object) -> list[tuple[Task, int]]:
    """Return the tasks that `query`, what follows `where`, finds, each with the `ver` of its row."""
    return _decoded(_select(conn, query, *values))


def _select(conn: Connection, query: str, *values: object) -> Cursor:
    return conn.execute(
        f"select ver, id, document, brief, validation, on_failure from harness.task where {query}".encode(),
        values,
    )


def _decoded(found: Cursor) -> list[tuple[Task, int]]:
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


def unknown_needs(
    conn: Connection, key: int, changed: Iterable[str], gone: Iterable[str]
) -> list[tuple[int, Task]]:
    """Return the tasks that depend on nothing that exists, with their places in the list.

    `changed`: the ids of tasks that depend on others than before, `gone`: those of removed tasks.
    """
    values = {
        "list": key,
        "changed": list(map(columns.text_key, changed)),
        "gone": list(map(columns.text_key, gone)),
    }
    found = conn.execute(_UNKNOWN_NEEDS, values).fetchall()
    return [(place, columns.decoded(*texts, name=name)) for place, name, *texts in found]


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
    document = _text(codec.written(session))
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


def has_happened(conn: Connection, op: str) -> bool:
    """Return whether the change called `op` was made; its list is locked, so it is not under way any more."""
    return conn.execute("select from harness.event where op = %s limit 1", (op,)).fetchone() is not None


class Mark(NamedTuple):
    """A moment in the events of a list: those above `floor` of earlier transactions than `since` are known.

    So are those of `seen`: a transaction may commit before another one that has lower numbers.
    """

    floor: int = 0
    since: int = 0
    seen: tuple[int, ...] = ()

    def news(self, conn: Connection, version: Version) -> News:
        """Return the lines of the newest events that were not known, and the mark of `version`."""
        found = conn.execute(_EVENTS, (version.key, str(self.since), self.floor, LINES)).fetchall()
        return self.after(found, version)

    def after(self, found: Sequence[tuple[Any, ...]], version: Version) -> News:
        """Return what `news` does, given the events since this mark."""
        seen = tuple(seq for seq, touched, _ in found if touched >= version.xmin)
        return [line for seq, _, line in found if seq not in self.seen], Mark(self.floor, version.xmin, seen)


# The lines of events that were not known (None: one without a line), and the mark of the moment.
News = tuple[list[str | None], Mark]


# -- texts ------------------------------------------------------------------------------------------------


def _text(document: dict[str, Any]) -> str:
    # ASCII: NUL and half surrogates, which a title may have, stay escapes, and PostgreSQL takes no others.
    return json.dumps(document)


def _plain(line: str) -> str:
    return escape(line).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")

"""A list besides its tasks: begin a transaction that looks at it or changes it, read it, and write it.

All functions raise `psycopg.Error`. Those that are not called `begin` or `look` work inside a transaction of
their caller.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.errors import ReadOnlySqlTransaction, UniqueViolation

import harness_lib
from harness_lib.state import codec, reading
from harness_lib.state.mirrored import Mark
from harness_lib.state.pgstore import rows
from harness_lib.state.pgstore.connecting import OWN_NAMES, Connection, Cursor, Format
from harness_lib.state.pgstore.rows import Rows
from harness_lib.system.processes import owner
from harness_lib.task import Session, State, Task
from harness_lib.text import Strings, escape

# A forgotten transaction must not hold up the others; in milliseconds.
STATEMENT_MS = 10_000
# Of the log, which one look reads.
LINES = 10_000

_EVENTS = """
select seq, touched::text::bigint, line from (
  select seq, touched, line from harness.event
  where list = %s and touched >= %s::text::xid8 and seq > %s
  order by seq desc limit %s
) as newest order by seq
"""
# One machine at a time merges into a branch, as long as the clock of the database allows it. A turn that has
# ended by that clock is only permission for others to try: what refuses the push of a late holder is the ref
# of the turn in the remote.
TAKE_TURN = """
insert into harness.turn as mine (list, branch, holder, fence, until)
select key, %(branch)s, %(holder)s, 1, clock_timestamp() + make_interval(secs => %(seconds)s)
from harness.list where name = %(name)s
on conflict (list, branch) do update
set holder = excluded.holder, until = excluded.until,
  fence = mine.fence + (mine.holder <> excluded.holder)::int
where mine.holder = excluded.holder or mine.until <= clock_timestamp()
returning fence
"""
LEAVE_TURN = """
update harness.turn set until = clock_timestamp()
where branch = %(branch)s and holder = %(holder)s
and list = (select key from harness.list where name = %(name)s)
"""
TURNS = """
select branch, holder from harness.turn join harness.list on list.key = turn.list
where list.name = %(name)s and until > clock_timestamp() order by branch
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
_PROPOSE = """
insert into harness.proposal (list, id, brief, validation, on_failure, document)
values (%(list)s, %(id)s, %(brief)s, %(validation)s, %(on_failure)s, %(document)s)
"""
_OF_NAME = "list = (select key from harness.list where name = %s)"
_EVENTS_OF = _EVENTS.replace("list = %s", _OF_NAME)


class Seen(NamedTuple):
    """The number of an event, and its change: after a loss others get the same numbers."""

    number: int
    op: str


NOTHING = Seen(0, "")


class Version(NamedTuple):
    """A list after the event number `number`, as one transaction sees it; `shell` has no tasks and sessions.

    `format`: that of the tables. `xmin`: all transactions with a lower number have ended. `cyclic`: there may
    be tasks that depend on themselves. `total`: how many tasks it has. `sessions`: its open ones, as text.
    `op`: the change that event `number` is of. `goes_on`: it has the event that was asked for.
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
    sessions: Strings
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
    return conn.execute("select * from harness.look(%s, %s, %s)", (name, *seen))


def begin_change(
    conn: Connection, name: str, uuid: str, seen: Seen, *, lock_seconds: float, shared: bool
) -> Version | None:
    """Begin a transaction that has locked the list, in one round trip; return what `read` does."""
    with conn.pipeline():
        begun = begin(conn, writes=True, lock_seconds=lock_seconds)
        lock(conn, uuid, shared=shared)
        found = _read(conn, name, seen)
    require_primary(begun)
    return _version(found.fetchone(), name)


def require_primary(begun: Cursor) -> None:
    """Raise ReadOnlySqlTransaction if the transaction that `begun` is the answer of may change nothing."""
    if (begun.fetchone() or ("on",))[0] == "on":
        raise ReadOnlySqlTransaction("the server takes no changes")


def look(
    conn: Connection, name: str, seen: Seen, mark: Mark, since: int | None = None
) -> tuple[Version | None, News, tuple[Task, ...]]:
    """Begin a transaction that sees one moment, in one round trip.

    Return what `read` does, what `news` does, and with `since` what `changed` does: then it has ended.
    """
    with conn.pipeline():
        begin(conn, writes=False)
        found = _read(conn, name, seen)
        events = conn.execute(_EVENTS_OF, (name, str(mark.since), mark.floor, LINES))
        read = None
        if since is not None:
            read = rows.selected(
                conn, f"{_OF_NAME} and touched >= %s::text::xid8 order by place", name, str(since)
            )
            conn.execute("commit")
    version = _version(found.fetchone(), name)
    changed = () if not read else tuple(task for task, _ in rows.tasks_of(read))
    return version, _news(events.fetchall(), version, mark) if version else ([], mark), changed


def _version(row: tuple[Any, ...] | None, name: str) -> Version | None:
    if row is None:
        return None
    key, uuid, number, reshaped, cyclic, shell, count, last, forgotten, now = row[:10]
    xmin, total, open_sessions, proposed, op, goes_on = row[14:]
    document = {**json.loads(shell), "tasks": [], "session_count": count, "last_session": last}
    state = codec.decode({**document, "attempts_reset": int(forgotten)}, name)
    proposals = tuple(rows.decoded(*texts, name=name) for name, *texts in proposed)
    state = state._replace(proposals=proposals)
    more = (reshaped, xmin, cyclic, total, tuple(open_sessions), op, goes_on)
    return Version(number, state, now, key, uuid, Format(*row[10:14]), *more)


def news(mine: Rows, version: Version, since: Mark) -> News:
    """Return the lines of the newest events that were not known at the mark `since`, and the mark now."""
    found = mine.ask(_EVENTS, str(since.since), since.floor, LINES)
    return _news(found.fetchall(), version, since)


def _news(found: Sequence[tuple[Any, ...]], version: Version, since: Mark) -> News:
    seen = tuple(seq for seq, touched, _ in found if touched >= version.xmin)
    return [line for seq, _, line in found if seq not in since.seen], Mark(since.floor, version.xmin, seen)


# The lines of events that were not known (None: one without a line), and the mark of the moment.
News = tuple[list[str | None], Mark]


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


def sessions_of(documents: Iterable[str]) -> tuple[Session, ...]:
    """Return the sessions whose texts these are. Raises ContractError."""
    found = [rows.parsed(text, "an open session") for text in documents]
    return codec.decode({"tasks": [], "sessions": found}, "open sessions").sessions or ()


def tally(mine: Rows) -> dict[str, int]:
    """Return the sums of the tally, by their names in `TALLY`."""
    row = mine.ask(_SUMS).fetchone()
    assert row is not None
    return dict(zip(TALLY, map(int, row), strict=True))


def put_session(mine: Rows, session: Session, number: int | None = None) -> None:
    """Open `session`, or put it in the place of the open session `number`."""
    document = json.dumps(reading.written(session))
    if number is None:
        query = "insert into harness.session (list, number, document) values (%s, %s, %s)"
        mine.ask(query, session.number, document)
    else:
        query = "update harness.session set number = %s, document = %s where list = %s and number = %s"
        mine.conn.execute(query, (session.number, document, mine.key, number))


def put_proposals(mine: Rows, old: Sequence[Task], new: Sequence[Task]) -> None:
    """Write the proposals `new`, where `old` ones are."""
    gone = [rows.text_key(task.id) for task in old if task not in new]
    if gone:
        mine.ask("delete from harness.proposal where list = %s and id = any(%s)", gone)
    for task in new:
        if task not in old:
            name = rows.text_key(task.id)
            mine.conn.execute(_PROPOSE, {**rows.texts_of(task), "list": mine.key, "id": name})


def log(mine: Rows, op: str, lines: Sequence[str | None]) -> None:
    """Write the lines of the log, or without any that there was a change."""
    machine = _plain(owner.machine(os.environ))
    texts = [None if line is None else _plain(line) for line in lines or (None,)]
    mine.ask(_PUT_EVENTS, op, machine, harness_lib.__version__, texts)


def _plain(line: str) -> str:
    return escape(line).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def go_on_after(conn: Connection, number: int) -> None:
    """Let the next event have a higher number than `number`."""
    sequence = "pg_get_serial_sequence('harness.event', 'seq')"
    conn.execute(
        f"select setval({sequence}, greatest(nextval({sequence}), %s))".encode(),
        (number,),
    )

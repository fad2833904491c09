"""Say how the database of a list and the machines that work on it are; find and repair what is wrong there.

The document of a task says all of it. Its columns and edges repeat that, what it waits for follows from other
tasks, and the tally from all of them: triggers keep these, unless somebody has written by hand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import chain
from typing import Any, NamedTuple

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError
from harness_lib.rules import graph, stats
from harness_lib.state import api, codec, journal, load, publishing, reading
from harness_lib.state.mirrored import Link, Mark
from harness_lib.state.pgstore import connecting, lists, rows
from harness_lib.state.pgstore.store import TIMEOUT_SECONDS, Doubt, PgStore
from harness_lib.task import State, Task
from harness_lib.text import escape, some

_SERVER = """
select current_setting('server_version'), pg_is_in_recovery(),
  current_setting('synchronous_standby_names') <> '' and current_setting('synchronous_commit') <> 'local',
  case when not pg_is_in_recovery()
    then ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end
"""
_MACHINES = """
select machine, max(at), (array_agg(harness order by seq desc))[1] from harness.event where list = %s
group by machine order by 2 desc limit 50
"""
_ROLE = """
select role from unnest(array['owner', 'author', 'worker', 'reader']) with ordinality as roles (role, place)
where %s in (select harness.lists(role))
  and (select relrowsecurity from pg_class where oid = 'harness.list'::regclass)
order by place limit 1
"""
# Anybody may have made a view of that name.
_EXTENSION = """
select quote_ident(nspname) from pg_extension join pg_namespace on pg_namespace.oid = extnamespace
where extname = 'pg_stat_statements'
"""
_SLOWEST = """
select round(mean_exec_time::numeric, 1), calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 100)
from {}.pg_stat_statements where query like '%%harness.%%' order by mean_exec_time desc limit 3
"""


def facts(store: PgStore) -> Iterator[tuple[str, str]]:
    """Yield what is known, as names and texts. Raises EnvSetupError."""
    yield "list", f"{store.link.name} in {connecting.shown(store.link.url)}"
    looking = store.moments.looked()
    version = looking.version
    yield from _server(looking.rows.conn, version)
    role = looking.rows.ask(_ROLE).fetchone()
    yield "role here", role[0] if role else "none: there are no roles in this database"
    link = Link.of(store.root) or store.link
    behind = version.number - link.mirrored
    yield "files here", "follow all events" if behind <= 0 else f"have followed up to event {link.mirrored}"
    for name, at, harness in looking.rows.ask(_MACHINES).fetchall():
        made = f" with harness {harness}" if harness else ""
        yield f"machine {escape(name)}", f"last change {_time(at)}{made}"
    for branch, holder in looking.rows.conn.execute(lists.TURNS, {"name": store.name}).fetchall():
        yield f"turn {escape(branch)}", f"{escape(holder)} has it"
    waiting = [
        f"{task.id} ({task.machine})" if task.machine else task.id
        for task in looking.in_progress()
        if task.step == "merge"
    ]
    yield "wait for their merge", escape(", ".join(waiting)) or "nothing"
    op = Doubt(store.root).op
    yield (
        "in doubt",
        "nothing" if op is None else f"one change ({op}): the next command that changes finds out",
    )
    yield from _slowest(looking.rows.conn)


def _server(conn: connecting.Connection, version: lists.Version) -> Iterator[tuple[str, str]]:
    row = conn.execute(_SERVER).fetchone()
    assert row is not None
    server, is_standby, waits, timeline = row
    kind = "a standby" if is_standby else f"the primary, timeline {timeline}"
    yield "server", f"PostgreSQL {server}, {kind}, waits for {'a' if waits else 'no'} standby"
    looks = " and may only look" if version.format.writes > connecting.SCHEMA else ""
    yield "format", f"{version.format.version}; this harness writes {connecting.SCHEMA}{looks}"
    yield "events", f"the last one is {version.number}; the time there is {_time(version.now)}"


def _slowest(conn: connecting.Connection) -> Iterator[tuple[str, str]]:
    try:
        places = conn.execute(_EXTENSION).fetchall()
        found = [conn.execute(_SLOWEST.format(place).encode(), ()).fetchall() for (place,) in places]
    except EnvSetupError:
        found = []
    if not found:
        yield "slowest statements", "not known: the server has no pg_stat_statements, or does not show it"
    for milliseconds, calls, query in chain(*found):
        yield f"{milliseconds} ms in the mean", f"{calls} times: {escape(query)}"


def _time(moment: datetime) -> str:
    return timestamps.render(moment.astimezone(timezone.utc))


def check(store: PgStore, *, repair: bool) -> list[str]:
    """Return what is wrong with the list in the database and with the files of this machine.

    `repair`: what rows say twice is put right, and a database that was set back goes on after what this
    machine has seen of it. Raises EnvSetupError, HeldError.
    """
    own = Link.of(store.root) or store.link
    # Its address may be that of another login.
    link = own._replace(url=store.link.url)
    whole = PgStore(store.root, link._replace(mirrored=0, op=""))
    found = lists.read(whole.moments.looked().rows.conn, link.name, lists.Seen(link.mirrored, link.op))
    if found and not found.goes_on:
        if not repair:
            return [f"the database was set back: it lacks event {link.mirrored}, which this machine has seen"]
        seen = load.find(store.root).state
        number, kept = _go_on(whole, seen, link.mirrored)
        store.link = link._replace(mirrored=0, op="", mark=Mark(max(link.mark.floor, number - 1)))
        with publishing.explained(store.root):
            store.link._replace(url=own.url).save(store.root)
        store.warn(_lost(store, seen, kept))
    problems = _recounted(store, repair=repair)
    problems += [str(problem) for problem in store.examine().problems]
    if Doubt(store.root).op is not None:
        with store.transaction() as tx:
            problems += tx.warnings
    return problems


def _lost(store: PgStore, seen: State, kept: str) -> str:
    """Return a sentence about the list that was `seen` before it was set back, and what only that one has."""
    present = {task.id for task in store.ask_to_change().search()}
    names = [task.id for task in seen.tasks if task.id not in present]
    which = f"; the database lacks {some(names)} of it" if names else ""
    return f"The list as this machine had seen it is kept in {kept}{which}."


def _recounted(store: PgStore, *, repair: bool) -> list[str]:
    looking = store.moments.looked()
    problems = Found(looking.rows).problems
    if problems and repair:
        with store.transaction() as tx:
            found = Found(tx.rows)
            found.repair()
            for problem in found.problems:
                tx.log("WARN", f"put right: {problem}")
            problems = Found(tx.rows).problems
    return problems


def _go_on(store: PgStore, seen: State, number: int) -> tuple[int, str]:
    """Let a list that was set back go on after event `number`, with fences above those of `seen`.

    Return the number of the event that says so, and the name of the file in which the mirror of what was
    seen is kept: what was added since the backup is nowhere else. Raises EnvSetupError, HeldError.
    """
    kept = store.mirror.keep("set-back")
    with connecting.explained(store.link.url), connecting.connect(store.link.url) as conn:
        here = (store.link.name, store.link.uuid, lists.NOTHING)
        found = lists.begin_change(conn, *here, lock_seconds=TIMEOUT_SECONDS, shared=False)
        old = store.moments.accepted(found, changes=True)
        mine = rows.Rows(conn, old.key)
        mine.raise_fences(seen.tasks)
        lists.go_on_after(conn, number)
        text = f"the database was set back: it lacks event {number}, which was seen"
        text = f"{text}; the list that was seen is kept in {kept}"
        line = journal.line("WARN", text, now=store.moments.time_of(old), session=old.shell.session_count)
        lists.log(mine, os.urandom(16).hex(), [line])
        mine.reshape()
        new = lists.read(conn, store.link.name)
        assert new is not None
        conn.execute("commit")
    return new.number, kept


_NAMES = ("id", "ver", "waits", "lost", *rows.TYPES)
_ROWS = f"""
select {", ".join(_NAMES)},
  array(select needs from harness.dep where dep.list = task.list and dep.task = task.id)
from harness.task where list = %s order by place
"""
_PUT_TALLY = f"""
insert into harness.tally (list, slot, {", ".join(lists.TALLY)}) values (%s, 0{", %s" * len(lists.TALLY)})
"""


class _Row(NamedTuple):
    """A task, what its row has, and what it should have."""

    task: Task
    has: dict[str, Any]
    should: dict[str, Any]

    def wrong(self) -> list[str]:
        return [name for name, value in self.should.items() if self.has[name] != value]

    def fenced(self) -> Task:
        """Return the task with the higher of its two fences: none ever falls."""
        return codec.sealed_task(self.task._replace(fence=max(self.task.fence, self.has["fence"])))


class Found:
    """The rows of a list at one moment; `problems`: what is wrong with them."""

    def __init__(self, mine: rows.Rows) -> None:
        self._mine = mine
        self.problems: list[str] = []
        self._rows: list[_Row] = []
        self._tally: dict[str, int] | None = None
        for *values, edges in mine.ask(_ROWS).fetchall():
            self._read({**dict(zip(_NAMES, values, strict=True)), "edges": set(edges)})
        if not self.problems:
            self._compare()

    def _compare(self) -> None:
        self._count()
        for row in self._rows:
            if wrong := row.wrong():
                self.problems.append(f"{reading.show(row.task.id)}: its row is wrong: {', '.join(wrong)}")
        self._tally = self._counted()
        wrong = [name for name, count in lists.tally(self._mine).items() if self._tally[name] != count]
        if wrong:
            self.problems.append(f"the tally is wrong: {', '.join(wrong)}")
        self._rings = graph.cycles(row.task._replace(status="pending") for row in self._rows)
        if self._rings and not self._mine.value("select cyclic from harness.list where key = %s"):
            self.problems.append(f"a ring is not noticed: {graph.describe(self._rings[0])}")

    def _read(self, has: dict[str, Any]) -> None:
        try:
            task = rows.decoded(*(has[name] for name in rows.TEXTS))
        except codec.ContractError as error:
            self.problems += [f"{has['id']}: its document cannot be read: {each}" for each in error.problems]
            return
        should = {"id": rows.text_key(task.id), **rows.of(task)}
        should["edges"] = set(map(rows.text_key, task.depends_on))
        # Another harness may write the same in other words.
        self._rows.append(_Row(task, has, {name: should[name] for name in should if name not in rows.TEXTS}))

    def _count(self) -> None:
        known = {row.should["id"]: row.should for row in self._rows}
        for row in self._rows:
            needs = row.should["edges"]
            there = [known[name] for name in needs & known.keys() if name != row.should["id"]]
            row.should["waits"] = len(needs) - sum(each["done"] for each in there)
            row.should["lost"] = sum(each["dead"] for each in there)

    def _counted(self) -> dict[str, int]:
        tasks = tuple(row.task for row in self._rows)
        counts: dict[str, int] = stats.count(State(tasks=tasks))._asdict()
        return {**counts, "runs": sum(map(api.TaskCommands.number, tasks))}

    def repair(self) -> None:
        """Put the rows right, if their documents can be read; nobody else changes the list meanwhile."""
        if self._tally is None:
            return
        mine = self._mine
        wrong = [row for row in self._rows if row.wrong()]
        for row in wrong:
            query = "update harness.task set fence = 0, id = %s where list = %s and id = %s"
            mine.conn.execute(query, (row.should["id"], mine.key, row.has["id"]))
        pairs = [(row.fenced(), row.has["ver"]) for row in wrong]
        mine.change(pairs, [row.task.id for row in wrong])
        mine.put_edges([row.task for row in wrong])
        # Triggers have told those that need them.
        mine.count_needs([row.should["id"] for row in self._rows])
        mine.ask("delete from harness.tally where list = %s")
        mine.ask(_PUT_TALLY, *(self._tally[name] for name in lists.TALLY))
        if self._rings:
            mine.put("cyclic = true")

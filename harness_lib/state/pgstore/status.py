"""Say how the database of a list and the machines that work on it are, for whoever runs the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import chain

import psycopg

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError
from harness_lib.state.mirrored import Link
from harness_lib.state.pgstore import connecting
from harness_lib.state.pgstore.connecting import Connection
from harness_lib.state.pgstore.doubts import Doubt
from harness_lib.state.pgstore.store import PgStore
from harness_lib.state.pgstore.versions import Version
from harness_lib.text import escape

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
    looking = store.looked()
    version = looking.version
    yield from _server(looking.connection, version)
    role = looking.connection.execute(_ROLE, (version.key,)).fetchone()
    yield "role here", role[0] if role else "none: there are no roles in this database"
    link = Link.of(store.root) or store.link
    behind = version.number - link.mirrored
    yield "files here", "follow all events" if behind <= 0 else f"have followed up to event {link.mirrored}"
    for name, at, harness in looking.connection.execute(_MACHINES, (version.key,)).fetchall():
        made = f" with harness {harness}" if harness else ""
        yield f"machine {escape(name)}", f"last change {_time(at)}{made}"
    turns = store.turns()
    for branch, holder in turns:
        yield f"turn {escape(branch)}", f"{escape(holder)} has it"
    waiting = [
        f"{task.id} ({task.machine})" if task.machine else task.id
        for task in looking.in_progress()
        if task.intent is not None and task.intent.action == "merge"
    ]
    yield "wait for their merge", escape(", ".join(waiting)) or "nothing"
    op = Doubt(store.root).op
    yield (
        "in doubt",
        "nothing" if op is None else f"one change ({op}): the next command that changes finds out",
    )
    yield from store.apart(lambda conn: list(_slowest(conn)))


def _server(conn: Connection, version: Version) -> Iterator[tuple[str, str]]:
    row = conn.execute(_SERVER).fetchone()
    assert row is not None
    server, is_standby, waits, timeline = row
    kind = "a standby" if is_standby else f"the primary, timeline {timeline}"
    yield "server", f"PostgreSQL {server}, {kind}, waits for {'a' if waits else 'no'} standby"
    yield "format", f"{version.format.version}; this harness writes {connecting.SCHEMA}"
    yield "events", f"the last one is {version.number}; the time there is {_time(version.now)}"


def _slowest(conn: Connection) -> Iterator[tuple[str, str]]:
    try:
        places = conn.execute(_EXTENSION).fetchall()
        found = [conn.execute(_SLOWEST.format(place).encode(), ()).fetchall() for (place,) in places]
    except (psycopg.Error, EnvSetupError):
        found = []
    if not found:
        yield "slowest statements", "not known: the server has no pg_stat_statements, or does not show it"
    for milliseconds, calls, query in chain(*found):
        yield f"{milliseconds} ms in the mean", f"{calls} times: {escape(query)}"


def _time(moment: datetime) -> str:
    return timestamps.render(moment.astimezone(timezone.utc))

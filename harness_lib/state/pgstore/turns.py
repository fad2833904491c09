"""Let one machine at a time merge into a branch, for as long as the clock of the database allows it.

A turn that has ended by that clock is only permission for others to try: what refuses the push of a late
holder is the ref of the turn in the remote.
"""

from __future__ import annotations

from harness_lib.state.pgstore.connecting import Connection

_TAKE = """
insert into harness.turn as mine (list, branch, holder, fence, until)
select key, %(branch)s, %(holder)s, 1, clock_timestamp() + make_interval(secs => %(seconds)s)
from harness.list where name = %(name)s
on conflict (list, branch) do update
set holder = excluded.holder, until = excluded.until,
  fence = mine.fence + (mine.holder <> excluded.holder)::int
where mine.holder = excluded.holder or mine.until <= clock_timestamp()
returning fence
"""
_LEAVE = """
update harness.turn set until = clock_timestamp()
where branch = %(branch)s and holder = %(holder)s
and list = (select key from harness.list where name = %(name)s)
"""
_NOW = """
select branch, holder from harness.turn join harness.list on list.key = turn.list
where list.name = %(name)s and until > clock_timestamp() order by branch
"""


def take(conn: Connection, name: str, branch: str, holder: str, seconds: float) -> int | None:
    """Do what `api.Shared.take_turn` says, for the list called `name`. Raises psycopg.Error."""
    values = {"name": name, "branch": branch, "holder": holder, "seconds": seconds}
    row = conn.execute(_TAKE, values).fetchone()
    return None if row is None else int(row[0])


def leave(conn: Connection, name: str, branch: str, holder: str) -> None:
    """End the turn of `holder`. Raises psycopg.Error."""
    conn.execute(_LEAVE, {"name": name, "branch": branch, "holder": holder})


def now(conn: Connection, name: str) -> tuple[tuple[str, str], ...]:
    """Return the branches with a turn that has not ended, and its holder. Raises psycopg.Error."""
    return tuple((branch, holder) for branch, holder in conn.execute(_NOW, {"name": name}).fetchall())

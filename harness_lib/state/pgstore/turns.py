"""SQL that lets one machine at a time merge into a branch, as long as the clock of the database allows it.

A turn that has ended by that clock is only permission for others to try: what refuses the push of a late
holder is the ref of the turn in the remote.
"""

from __future__ import annotations

TAKE = """
insert into harness.turn as mine (list, branch, holder, fence, until)
select key, %(branch)s, %(holder)s, 1, clock_timestamp() + make_interval(secs => %(seconds)s)
from harness.list where name = %(name)s
on conflict (list, branch) do update
set holder = excluded.holder, until = excluded.until,
  fence = mine.fence + (mine.holder <> excluded.holder)::int
where mine.holder = excluded.holder or mine.until <= clock_timestamp()
returning fence
"""
LEAVE = """
update harness.turn set until = clock_timestamp()
where branch = %(branch)s and holder = %(holder)s
and list = (select key from harness.list where name = %(name)s)
"""
NOW = """
select branch, holder from harness.turn join harness.list on list.key = turn.list
where list.name = %(name)s and until > clock_timestamp() order by branch
"""

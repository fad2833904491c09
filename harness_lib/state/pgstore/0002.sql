-- Plan the statements that count tasks and look at a list once in a connection: it is most of what a change costs.
-- Machines with an older harness go on as before.

drop trigger count_added on harness.task;
drop trigger count_changed on harness.task;
drop trigger count_removed on harness.task;
drop function harness.count_tasks();

-- Add to the tally what has become of tasks: `fresh` as they are, less `gone` as they were. One function for each
-- kind of change: a connection plans its statement once.
do $do$
declare
  kind record;
begin
  for kind in select * from (values
    ('insert', 'new table as fresh', 'select 1 as n, * from fresh'),
    ('update', 'old table as gone new table as fresh',
      'select 1 as n, * from fresh union all select -1 as n, * from gone'),
    ('delete', 'old table as gone', 'select -1 as n, * from gone')
  ) as kinds (change, tables, changed)
  loop
    execute format($sql$
create function harness.count_%1$s() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into harness.tally as mine
  select * from (
    select list, (pg_current_xact_id()::text::bigint %% 16)::smallint,
      sum(n), sum(n * done::int), sum(n * (status = 'failed')::int),
      sum(n * (status = 'pending' or doubted)::int), sum(n * (status = 'in_progress')::int),
      sum(n * ((status = 'pending' or doubted) and lost > 0)::int),
      sum(n * dead::int), sum(n * red::int), sum(n * attempts), sum(n * checkpoints), sum(n * runs)
    from (%3$s) as changed group by list
  ) as found (list, slot, a, b, c, d, e, f, g, h, i, j, k)
  -- Of a list that is removed nothing is counted.
  where list in (select key from harness.list)
    and (a, b, c, d, e, f, g, h, i, j, k) <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
  on conflict (list, slot) do update set
    total = mine.total + excluded.total, completed = mine.completed + excluded.completed,
    failed = mine.failed + excluded.failed, pending = mine.pending + excluded.pending,
    in_progress = mine.in_progress + excluded.in_progress, blocked = mine.blocked + excluded.blocked,
    permanent = mine.permanent + excluded.permanent, red = mine.red + excluded.red,
    attempts = mine.attempts + excluded.attempts, checkpoints = mine.checkpoints + excluded.checkpoints,
    runs = mine.runs + excluded.runs;
  return null;
end $$;
create trigger count_%1$s after %1$s on harness.task
  referencing %2$s for each statement execute function harness.count_%1$s()
    $sql$, kind.change, kind.tables, kind.changed);
  end loop;
end $do$;

-- Return what the list called `called` has besides its tasks and its log, and whether it has the event `seen`, of
-- the change `seen_op` if that is known. A connection plans this once: it is most of what a look costs.
create function harness.look(called text, seen bigint, seen_op text) returns table (
  key bigint, uuid text, number bigint, reshaped bigint, cyclic boolean, shell text, session_count bigint,
  last_session text, attempts_reset numeric, now timestamptz, version int, reads int, writes int, harness text,
  xmin bigint, total bigint, sessions text[], proposals text[], op text, goes_on boolean
)
language plpgsql stable set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
begin
  return query select list.key, list.uuid::text, coalesce(last.seq, 0), list.reshaped, list.cyclic, list.shell,
    list.session_count, list.last_session, list.attempts_reset, clock_timestamp(),
    about.version, about.reads, about.writes, about.harness,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
    (select coalesce(sum(tally.total), 0)::bigint from harness.tally where tally.list = list.key),
    array(select document from harness.session where session.list = list.key order by place),
    array(select array[id, document, brief, validation, on_failure] from harness.proposal
      where proposal.list = list.key order by place),
    coalesce(last.op::text, ''), seen = 0 or exists(
      select from harness.event where event.list = list.key and seq = seen and seen_op in ('', event.op::text)
    )
  from harness.list cross join harness.about left join lateral (
    select seq, event.op from harness.event where event.list = list.key order by seq desc limit 1
  ) as last on true where name = called;
end $$;

update harness.about set version = 2;

-- What a claim, a heartbeat and an outcome ask for is found by an index: their cost does not depend on the list.
-- Expands version 1: an older harness still reads `list.version` and `task.changed`, and then says what it needs.

-- An older harness may read tables of a newer one, if it knows the format `reads` or a later one.
alter table harness.about add column reads int not null default 2;
update harness.about set version = 2;

-- `reshaped` differs after each removal: who knows an earlier list reads it anew. `shell`: the list's JSON
-- without tasks and open sessions; the three numbers here count, and not those in it.
alter table harness.list
  add column cyclic boolean not null default false,
  add column session_count bigint not null default 0,
  add column last_session text,
  add column attempts_reset numeric not null default 0;

-- `document` says all of a task; the columns are what it is found by, and `ver` counts its changes.
-- `touched`: the transaction that changed it last. `open`: it could be claimed, were it not for what it needs.
-- `waits`: how many tasks it needs that are not done; `lost`: how many of them have failed for good (`dead`).
-- `doubted`: only an edit says that it is completed.
alter table harness.task
  alter column changed set default 0,
  add column ver bigint not null default 0,
  add column touched xid8 not null default pg_current_xact_id(),
  add column sort_key bytea not null default '',
  add column status text not null default 'pending',
  add column open boolean not null default false,
  add column retry boolean not null default false,
  add column priority smallint not null default 1,
  add column since float8 not null default '-infinity',
  add column done boolean not null default false,
  add column dead boolean not null default false,
  add column doubted boolean not null default false,
  add column unproven boolean not null default false,
  add column halted boolean not null default false,
  add column red boolean not null default false,
  add column noted boolean not null default false,
  add column completed_at text not null default '' collate "C",
  add column worker text,
  add column lease timestamptz,
  add column attempts bigint not null default 0,
  add column checkpoints int not null default 0,
  add column waits int not null default 0,
  add column lost int not null default 0,
  add column ready boolean generated always as (open and waits = 0) stored;
drop index harness.task_changed;
create index task_queue on harness.task (list, retry, priority, since, sort_key) where ready;
create index task_place on harness.task (list, place);
create index task_touched on harness.task (list, touched);
create index task_working on harness.task (list, worker) where status = 'in_progress';
create index task_lost on harness.task (list) where lost > 0 and not done and not dead;
create index task_halted on harness.task (list) where halted;
create index task_unproven on harness.task (list) where unproven;
create index task_red on harness.task (list) where red;
create index task_noted on harness.task (list, completed_at) where noted;

create table harness.dep (
  list bigint not null references harness.list on delete cascade,
  task text not null,
  needs text not null,
  primary key (list, task, needs)
);
create index dep_needs on harness.dep (list, needs);

create table harness.session (
  list bigint not null references harness.list on delete cascade,
  place bigint generated always as identity,
  number bigint not null,
  document text not null,
  primary key (list, place),
  unique (list, number)
);

-- Several rows, one picked by each transaction: in one all writers would wait for each other's disk.
create table harness.tally (
  list bigint not null references harness.list on delete cascade,
  slot smallint not null,
  total bigint not null,
  completed bigint not null,
  failed bigint not null,
  pending bigint not null,
  in_progress bigint not null,
  blocked bigint not null,
  permanent bigint not null,
  red bigint not null,
  attempts numeric not null,
  checkpoints numeric not null,
  primary key (list, slot)
);

-- Add to the tally what has become of tasks: `fresh` as they are, less `old` as they were.
create function harness.count_tasks() returns trigger language plpgsql as $$
declare
  new_ones text := case tg_op when 'DELETE' then '' else 'select 1 as n, * from fresh' end;
  old_ones text := case tg_op when 'INSERT' then '' else 'select -1 as n, * from gone' end;
begin
  execute format($sql$
    insert into harness.tally as mine
    select * from (
      select list, (pg_current_xact_id()::text::bigint %% 16)::smallint,
        sum(n), sum(n * done::int), sum(n * (status = 'failed')::int),
        sum(n * (status = 'pending' or doubted)::int), sum(n * (status = 'in_progress')::int),
        sum(n * ((status = 'pending' or doubted) and lost > 0)::int),
        sum(n * dead::int), sum(n * red::int), sum(n * attempts), sum(n * checkpoints)
      from (%s %s %s) as changed group by list
    ) as found (list, slot, a, b, c, d, e, f, g, h, i, j)
    -- Of a list that is removed nothing is counted.
    where list in (select key from harness.list) and (a, b, c, d, e, f, g, h, i, j) <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    on conflict (list, slot) do update set
      total = mine.total + excluded.total, completed = mine.completed + excluded.completed,
      failed = mine.failed + excluded.failed, pending = mine.pending + excluded.pending,
      in_progress = mine.in_progress + excluded.in_progress, blocked = mine.blocked + excluded.blocked,
      permanent = mine.permanent + excluded.permanent, red = mine.red + excluded.red,
      attempts = mine.attempts + excluded.attempts, checkpoints = mine.checkpoints + excluded.checkpoints
    $sql$, new_ones, case tg_op when 'UPDATE' then 'union all' else '' end, old_ones);
  return null;
end $$;
create trigger count_added after insert on harness.task
  referencing new table as fresh for each statement execute function harness.count_tasks();
create trigger count_changed after update on harness.task
  referencing old table as gone new table as fresh for each statement execute function harness.count_tasks();
create trigger count_removed after delete on harness.task
  referencing old table as gone for each statement execute function harness.count_tasks();

-- Tell those that need a task that it is done, or has failed for good, or is so no longer.
create function harness.tell_dependents() returns trigger language plpgsql as $$
declare
  mine harness.task := case tg_op when 'DELETE' then old else new end;
  fewer int := 0;
  more_lost int := 0;
begin
  if tg_op <> 'DELETE' then
    fewer := new.done::int;
    more_lost := new.dead::int;
  end if;
  if tg_op <> 'INSERT' then
    fewer := fewer - old.done::int;
    more_lost := more_lost - old.dead::int;
  end if;
  if fewer <> 0 or more_lost <> 0 then
    -- Always in the same order: two that finish at once may have dependents in common.
    perform from harness.task where list = mine.list and id in (
      select task from harness.dep where list = mine.list and needs = mine.id and task <> mine.id
    ) order by id for no key update;
    update harness.task set waits = waits - fewer, lost = lost + more_lost
    where list = mine.list and id in (
      select task from harness.dep where list = mine.list and needs = mine.id and task <> mine.id
    );
  end if;
  return null;
end $$;
create trigger tell_dependents after insert or delete or update of done, dead on harness.task
  for each row execute function harness.tell_dependents();

-- The change `version` becomes the numbers from `version << 20`; new ones are higher.
alter table harness.event add column seq bigint;
-- Which harness has made the change.
alter table harness.event add column harness text not null default '';
alter table harness.event add column touched xid8 not null default pg_current_xact_id();
update harness.event set seq = (version << 20) + number;
alter table harness.event drop constraint event_pkey, drop column version, drop column number;
alter table harness.event alter column seq set not null, add primary key (list, seq);
alter table harness.event alter column seq add generated always as identity;
select setval(pg_get_serial_sequence('harness.event', 'seq'), greatest(max(seq), 1)) from harness.event;
create index event_touched on harness.event (list, touched);

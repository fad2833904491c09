-- One schema for many lists; every key begins with the list.
-- What a claim, a heartbeat and an outcome ask for is found by an index: their cost does not depend on the list.

create schema if not exists harness;

-- An older harness may go on with tables of a newer one, if it knows the format `reads`, or to change them
-- `writes`, or a later one. A new format first only adds something, which old ones need not know; a later one
-- raises the two. `harness`: which one has made the format.
create table harness.about (
  version int not null,
  reads int not null,
  writes int not null,
  harness text not null default ''
);

-- `reshaped` differs after each removal: who knows an earlier list reads it anew. `shell`: the list's JSON
-- without tasks and open sessions; the three numbers at the end count, and not those in it.
create table harness.list (
  key bigint generated always as identity primary key,
  name text not null unique,
  uuid uuid not null default gen_random_uuid(),
  reshaped bigint not null default 0,
  shell text not null,
  cyclic boolean not null default false,
  session_count bigint not null default 0,
  last_session text,
  attempts_reset numeric not null default 0
);

-- What a task is stands in four columns: `validation` and `on_failure` run as commands, `brief` is what else an
-- author writes, `document` what workers write; unknown keys are in both. The others are what it is found by,
-- and `ver` counts its changes.
-- `touched`: the transaction that changed it last. `open`: it could be claimed, were it not for what it needs.
-- `waits`: how many tasks it needs that are not done; `lost`: how many of them have failed for good (`dead`).
-- `doubted`: only an edit says that it is completed.
-- `runs` stands for the commands of a task (0: it has none); the tally has their sum.
-- `proof` stands for its check and the commit that this has passed on.
-- `ending`: its attempt is being ended, which another machine may do. `login`: who has claimed it, if there are roles.
create table harness.task (
  list bigint not null references harness.list on delete cascade,
  id text not null,
  place bigint not null,
  fence bigint not null,
  document text not null,
  brief text not null default '{}',
  validation text not null default '{}',
  on_failure text not null default '{}',
  ver bigint not null default 0,
  touched xid8 not null default pg_current_xact_id(),
  sort_key bytea not null default '',
  status text not null default 'pending',
  open boolean not null default false,
  retry boolean not null default false,
  priority smallint not null default 1,
  since float8 not null default '-infinity',
  done boolean not null default false,
  dead boolean not null default false,
  doubted boolean not null default false,
  unproven boolean not null default false,
  halted boolean not null default false,
  red boolean not null default false,
  noted boolean not null default false,
  completed_at text not null default '' collate "C",
  worker text,
  lease timestamptz,
  attempts bigint not null default 0,
  checkpoints int not null default 0,
  waits int not null default 0,
  lost int not null default 0,
  runs bigint not null default 0,
  proof bigint,
  ending boolean not null default false,
  login name,
  ready boolean generated always as (open and waits = 0) stored,
  primary key (list, id)
);
create index task_queue on harness.task (list, retry, priority, since, sort_key) where ready;
create index task_place on harness.task (list, place);
create index task_touched on harness.task (list, touched);
create index task_working on harness.task (list, worker) where status = 'in_progress';
create index task_lost on harness.task (list) where lost > 0 and not done and not dead;
create index task_halted on harness.task (list) where halted;
create index task_unproven on harness.task (list) where unproven;
create index task_red on harness.task (list) where red;
create index task_noted on harness.task (list, completed_at) where noted;
create index task_proof on harness.task (list, proof, place) where proof is not null;

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

-- Tasks that agents propose, in the columns of tasks.
create table harness.proposal (
  list bigint not null references harness.list on delete cascade,
  place bigint generated always as identity,
  id text not null,
  brief text not null,
  validation text not null,
  on_failure text not null,
  document text not null,
  primary key (list, place)
);

-- The fences of removed tasks: a task of the same id goes on from there.
create table harness.removed (
  list bigint not null references harness.list on delete cascade,
  id text not null,
  fence bigint not null,
  primary key (list, id)
);

create table harness.event (
  list bigint not null references harness.list on delete cascade,
  seq bigint generated always as identity,
  -- Which change of which command this was: its answer may be lost on the way back.
  op uuid not null,
  at timestamptz not null default clock_timestamp(),
  machine text not null,
  -- Which harness has made the change, and which login.
  harness text not null default '',
  login name not null default session_user,
  touched xid8 not null default pg_current_xact_id(),
  line text,
  primary key (list, seq)
);
create index event_op on harness.event (op);
create index event_touched on harness.event (list, touched);

-- Who merges into a branch, one machine at a time; the row stays, and its fence only grows.
create table harness.turn (
  list bigint not null references harness.list on delete cascade,
  branch text not null,
  holder text not null,
  fence bigint not null,
  until timestamptz not null,
  primary key (list, branch)
);

-- Which role a login, or all logins of a group, has in a list.
create table harness.member (
  list bigint not null references harness.list on delete cascade,
  login regrole not null,
  role text not null check (role in ('reader', 'worker', 'author', 'owner')),
  primary key (list, login)
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
  runs numeric not null default 0,
  primary key (list, slot)
);

-- Others change tallies and dependents through these functions, so nobody needs a right for that.

-- Add to the tally what has become of tasks: `fresh` as they are, less `gone` as they were.
create function harness.count_tasks() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
        sum(n * dead::int), sum(n * red::int), sum(n * attempts), sum(n * checkpoints), sum(n * runs)
      from (%s %s %s) as changed group by list
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
      runs = mine.runs + excluded.runs
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
create function harness.tell_dependents() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
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
    -- Always in the same order, that of harness: two that finish at once may have dependents in common.
    perform from harness.task where list = mine.list and id in (
      select task from harness.dep where list = mine.list and needs = mine.id and task <> mine.id
    ) order by id collate "C" for no key update;
    update harness.task set waits = waits - fewer, lost = lost + more_lost
    where list = mine.list and id in (
      select task from harness.dep where list = mine.list and needs = mine.id and task <> mine.id
    );
  end if;
  return null;
end $$;
create trigger tell_dependents after insert or delete or update of done, dead on harness.task
  for each row execute function harness.tell_dependents();

-- Count what the tasks `ids` wait for.
create function harness.count_needs(key bigint, ids text[]) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
  update harness.task set waits = fresh.waits, lost = fresh.lost from (
    select mine.id, count(dep.needs) filter (where other.done is not true) as waits,
      count(*) filter (where other.dead) as lost
    from harness.task as mine
    left join harness.dep on dep.list = mine.list and dep.task = mine.id
    left join harness.task as other
      on other.list = dep.list and other.id = dep.needs and other.id <> mine.id
    where mine.list = key and mine.id = any(ids) group by mine.id
  ) as fresh
  where list = key and task.id = fresh.id and (task.waits, task.lost) <> (fresh.waits, fresh.lost)
$$;

-- Return the lists in which who is logged in has the role `lowest` or a higher one.
create function harness.lists(lowest text) returns setof bigint
language sql stable security definer set search_path = pg_catalog, pg_temp rows 10 as $$
  -- Whoever owns the tables.
  select key from harness.list where pg_has_role(session_user, current_user, 'member')
  union all
  select list from harness.member where pg_has_role(session_user, login, 'member')
    and role = any((array['owner', 'author', 'worker', 'reader'])[
      :array_position(array['owner', 'author', 'worker', 'reader'], lowest)])
$$;

insert into harness.about (version, reads, writes) values (1, 1, 1);

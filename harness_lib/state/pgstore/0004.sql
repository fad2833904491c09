-- Who may do what can be said of each column: see roles.sql, without which nobody is asked.

-- An older harness knows only `document`.
update harness.about set version = 4, reads = 4;

-- What a task is stands in four columns: `validation` and `on_failure` run as commands, `brief` is what else an
-- author writes, `document` what workers write; unknown keys are in both.
-- `ending`: its attempt is being ended, which another machine may do. `login`: who has claimed it, if there are roles.
alter table harness.task
  add column brief text not null default '{}',
  add column validation text not null default '{}',
  add column on_failure text not null default '{}',
  add column ending boolean not null default false,
  add column login name;

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

-- Who has made a change.
alter table harness.event add column login name not null default session_user;

-- Which role a login, or all logins of a group, has in a list.
create table harness.member (
  list bigint not null references harness.list on delete cascade,
  login regrole not null,
  role text not null check (role in ('reader', 'worker', 'author', 'owner')),
  primary key (list, login)
);

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

-- What others change through them, nobody needs a right for.
alter function harness.count_tasks() security definer set search_path = pg_catalog, pg_temp;
alter function harness.tell_dependents() security definer set search_path = pg_catalog, pg_temp;

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

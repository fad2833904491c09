-- One schema for many lists; every key begins with the list.
-- `version` counts the changes of a list: a row knows in which one it was written last.

create schema if not exists harness;

create table if not exists harness.about (
  version int not null
);

create table if not exists harness.list (
  key bigint generated always as identity primary key,
  name text not null unique,
  uuid uuid not null default gen_random_uuid(),
  version bigint not null default 0,
  -- The version in which tasks were removed last: who knows an older one reads the list anew.
  reshaped bigint not null default 0,
  -- The list's JSON without its tasks.
  shell text not null
);

create table if not exists harness.task (
  list bigint not null references harness.list on delete cascade,
  id text not null,
  place bigint not null,
  changed bigint not null,
  fence bigint not null,
  document text not null,
  primary key (list, id)
);
create index if not exists task_changed on harness.task (list, changed);

-- The fences of removed tasks: a task of the same id goes on from there.
create table if not exists harness.removed (
  list bigint not null references harness.list on delete cascade,
  id text not null,
  fence bigint not null,
  primary key (list, id)
);

create table if not exists harness.event (
  list bigint not null references harness.list on delete cascade,
  version bigint not null,
  number int not null,
  -- Which change of which command this was: its answer may be lost on the way back.
  op uuid not null,
  at timestamptz not null default clock_timestamp(),
  machine text not null,
  line text,
  primary key (list, version, number)
);
create index if not exists event_op on harness.event (op);

-- Who merges into a branch, one machine at a time; the row stays, and its fence only grows.
create table if not exists harness.turn (
  list bigint not null references harness.list on delete cascade,
  branch text not null,
  holder text not null,
  fence bigint not null,
  until timestamptz not null,
  primary key (list, branch)
);

insert into harness.about (version) select 1 where not exists (select from harness.about);

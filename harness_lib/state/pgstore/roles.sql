-- Who may do what in a list: `harness.admit` gives a login, or a group of them, a role in it.
-- Each role has what those before it have: reader, worker, author, owner.
-- Rights to tables and columns are those of four groups, as one statement then fails before it begins; in
-- which lists they count is said by row policies, and by triggers for columns. All of it may be run again.

do $$
declare
  grantee text;
  role text;
  lower_one text;
  policy record;
begin
  foreach role in array array['harness_reader', 'harness_worker', 'harness_author', 'harness_owner'] loop
    if not exists (select from pg_roles where rolname = role) then
      execute format('create role %I nologin', role);
    end if;
    if lower_one is not null then
      execute format('grant %I to %I', lower_one, role);
    end if;
    lower_one := role;
  end loop;
  -- What was given by hand before would go around what follows.
  for grantee in
    select distinct case when acl.grantee = 0 then 'public' else acl.grantee::regrole::text end
    from (
      select relacl from pg_class where relnamespace = 'harness'::regnamespace
      union all select attacl from pg_attribute join pg_class on attrelid = pg_class.oid
        where relnamespace = 'harness'::regnamespace
      union all select nspacl from pg_namespace where nspname = 'harness'
    ) as given (rights), aclexplode(rights) as acl
    where acl.grantee not in (
      select relowner from pg_class where relnamespace = 'harness'::regnamespace
      union all select nspowner from pg_namespace where nspname = 'harness'
    )
    union values ('harness_reader'), ('harness_worker'), ('harness_author'), ('harness_owner')
  loop
    execute format('revoke all on all tables in schema harness from %s cascade', grantee);
    execute format('revoke all on all sequences in schema harness from %s cascade', grantee);
    execute format('revoke all on schema harness from %s cascade', grantee);
  end loop;
  for policy in select tablename, policyname from pg_policies where schemaname = 'harness' loop
    execute format('drop policy %I on harness.%I', policy.policyname, policy.tablename);
  end loop;
end $$;

grant usage on schema harness to harness_reader;
grant select on harness.about to harness_reader;
-- Removing a task, and letting a restored list go on.
grant usage on all sequences in schema harness to harness_author;

-- Refuse to change columns, unless who is logged in has the role of the first argument in the list.
create or replace function harness.require_role() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  mine bigint;
begin
  if tg_table_name = 'list' then mine := new.key; else mine := new.list; end if;
  if mine not in (select harness.lists(tg_argv[0])) then
    raise insufficient_privilege using message =
      format('only an %s of this list may change %s', tg_argv[0], tg_argv[1]);
  end if;
  return new;
end $$;

do $$
declare
  rights record;
  seen text;
  mine text;
begin
  for rights in select * from (values
    ('list', 'select', 'reader', ''),
    ('list', 'insert', 'owner', 'name, shell, session_count, last_session, attempts_reset'),
    ('list', 'update', 'worker', 'session_count, last_session'),
    ('list', 'update', 'author', 'shell, cyclic, reshaped, attempts_reset'),
    ('list', 'update', 'owner', 'name'),
    ('list', 'delete', 'owner', ''),
    ('task', 'select', 'reader', ''),
    ('task', 'insert', 'worker', 'list, id, place, brief, validation, on_failure, document, sort_key, priority, '
      'fence, status, open, retry, since, done, dead, doubted, unproven, halted, red, noted, ending, '
      'completed_at, worker, lease, attempts, checkpoints, runs, proof'),
    ('task', 'update', 'worker', 'document, fence, status, open, retry, since, done, dead, doubted, unproven, '
      'halted, red, noted, ending, completed_at, worker, lease, attempts, checkpoints, proof, ver, touched'),
    ('task', 'update', 'author', 'brief, validation, on_failure, sort_key, priority, runs'),
    ('task', 'delete', 'author', ''),
    ('dep', 'select', 'reader', ''),
    ('dep', 'insert', 'worker', ''),
    ('dep', 'delete', 'author', ''),
    ('proposal', 'select', 'reader', ''),
    ('proposal', 'insert', 'worker', 'list, id, brief, validation, on_failure, document'),
    ('proposal', 'delete', 'author', ''),
    ('removed', 'select', 'reader', ''),
    ('removed', 'insert', 'author', ''),
    ('removed', 'update', 'author', ''),
    ('session', 'select', 'reader', ''),
    ('session', 'insert', 'worker', 'list, number, document'),
    ('session', 'update', 'worker', 'number, document'),
    ('session', 'delete', 'worker', ''),
    ('event', 'select', 'reader', ''),
    ('event', 'insert', 'worker', 'list, op, machine, line, harness'),
    ('turn', 'select', 'reader', ''),
    ('turn', 'insert', 'worker', ''),
    ('turn', 'update', 'worker', 'holder, fence, until'),
    ('tally', 'select', 'reader', ''),
    ('member', 'select', 'reader', '')
  ) as rights (name, command, role, columns)
  loop
    execute format('alter table harness.%I enable row level security', rights.name);
    execute format('grant %s %s on harness.%I to %I', rights.command,
      case rights.columns when '' then '' else '(' || rights.columns || ')' end,
      rights.name, 'harness_' || rights.role);
    if exists (
      select from pg_policies
      where schemaname = 'harness' and tablename = rights.name and policyname = rights.command
    ) then
      -- Its lowest role may change other columns.
      execute format(
        'create or replace trigger %I before update of %s on harness.%I for each row '
        'execute function harness.require_role(%L, %L)',
        'only_' || rights.role, rights.columns, rights.name, rights.role, rights.columns);
      continue;
    end if;
    seen := format('%I in (select harness.lists(%L))', case rights.name when 'list' then 'key' else 'list' end, 'reader');
    mine := replace(seen, 'reader', rights.role);
    if (rights.name, rights.command) = ('list', 'insert') then
      -- It has no members yet.
      mine := 'true';
    end if;
    execute format('create policy %1$I on harness.%2$I for %1$s %3$s', rights.command, rights.name,
      case rights.command
        when 'insert' then format('with check (%s)', mine)
        -- Whoever sees a row is told that it may not be changed.
        when 'update' then format('using (%s) with check (%s)', seen, mine)
        else format('using (%s)', mine)
      end);
  end loop;
end $$;

-- Who makes a list is its owner.
create or replace function harness.own_list() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into harness.member values (new.key, quote_ident(session_user)::regrole, 'owner');
  return null;
end $$;
create or replace trigger own_list after insert on harness.list
  for each row execute function harness.own_list();

-- Let nobody but authors bring in a command that no task of the list has; the check of a repair need not fail
-- first, as that of its task may have had to.
create or replace function harness.copy_commands() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.list not in (select harness.lists('author')) and not (
    (new.validation = '{"command": null, "timeout_seconds": 300}' or exists (
      select from harness.task where list = new.list
        and new.validation in (validation, replace(validation, '"red_first": true, ', ''))))
    and (new.on_failure = '{"cleanup": null}' or exists (
      select from harness.task where list = new.list and on_failure = new.on_failure))
  ) then
    raise insufficient_privilege using message =
      'only an author of this list may add a task with a check or cleanup that no other task has';
  end if;
  return new;
end $$;
create or replace trigger copy_commands before insert on harness.task
  for each row execute function harness.copy_commands();
create or replace trigger copy_commands before insert on harness.proposal
  for each row execute function harness.copy_commands();

-- Let nobody but authors write what another task needs than one that was added just now.
create or replace function harness.new_edges() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.list not in (select harness.lists('author')) and not exists (
    select from harness.task
    where list = new.list and id = new.task and ver = 0 and touched = pg_current_xact_id()
  ) then
    raise insufficient_privilege using message = 'only an author of this list may change what a task needs';
  end if;
  return new;
end $$;
create or replace trigger new_edges before insert on harness.dep
  for each row execute function harness.new_edges();

-- Let nobody but authors bring a removed task back with an older fence.
create or replace function harness.keep_fence() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.list not in (select harness.lists('author'))
    and new.fence < (select fence from harness.removed where list = new.list and id = new.id)
  then
    raise insufficient_privilege using message = format('the fence of %s would fall', new.id);
  end if;
  return new;
end $$;
create or replace trigger keep_fence before insert on harness.task
  for each row execute function harness.keep_fence();

-- Let nobody but authors write over a later claim, or end the claim of another login while it is valid.
create or replace function harness.keep_claim() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  if new.list not in (select harness.lists('author')) and (
    new.ver <= old.ver or new.fence < old.fence
    or (old.status = 'in_progress' and old.lease > clock_timestamp() and not old.ending
      and old.login <> session_user)
  ) then
    raise insufficient_privilege using message = format('%s is held by %s', new.id, old.login);
  end if;
  if new.fence > old.fence then
    new.login := session_user;
  end if;
  return new;
end $$;
-- What it waits for is counted by others.
create or replace trigger keep_claim before update on harness.task
  for each row when ((old.waits, old.lost) = (new.waits, new.lost)) execute function harness.keep_claim();

-- Give a login or a group the role `as_role` in the list called `list_name`; null takes it away.
create or replace function harness.admit(list_name text, who regrole, as_role text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
-- A role that is withdrawn without having been given is a warning of PostgreSQL 15.
set client_min_messages = error as $$
declare
  mine bigint := (select key from harness.list where name = list_name);
  each text;
begin
  if mine is null or mine not in (select harness.lists('owner')) then
    raise insufficient_privilege using message = format('you own no list called %s', list_name);
  end if;
  if who::text = any('{harness_reader, harness_worker, harness_author, harness_owner}') then
    raise insufficient_privilege using message =
      format('%s is no member of a list: it has the rights of a role in all of them', who);
  end if;
  delete from harness.member where list = mine and login = who;
  if as_role is not null then
    insert into harness.member values (mine, who, as_role);
  end if;
  execute format('revoke harness_reader, harness_worker, harness_author, harness_owner from %s', who);
  for each in select distinct role from harness.member where login = who loop
    execute format('grant %I to %s', 'harness_' || each, who);
  end loop;
end $$;

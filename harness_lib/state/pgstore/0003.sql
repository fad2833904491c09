-- Whether commands have changed, and which task has passed the same check, is found without reading the list.

update harness.about set version = 3;

-- `runs` stands for the commands of a task (0: it has none); the tally has their sum.
-- `proof` stands for its check and the commit that this has passed on.
alter table harness.task add column runs bigint not null default 0, add column proof bigint;
create index task_proof on harness.task (list, proof, place) where proof is not null;
alter table harness.tally add column runs numeric not null default 0;

create or replace function harness.count_tasks() returns trigger language plpgsql as $$
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

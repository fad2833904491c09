"""What a hostile worker of the list MINE types, and what lets it happen once it is gone: each is needed."""

from __future__ import annotations

from harness_lib.state.pgstore import rows
from harness_lib.task import Task, Validation

EVIL = rows.texts_of(Task("evil", validation=Validation("evil")))["validation"]
PUT = "update harness.task set ver = ver + 1, "
SPARE = "alter table harness.{} disable row level security"
COPY = """
insert into harness.task (list, id, place, fence, document, validation, on_failure)
select list, 'task-666', 666, 0, document, {}, {} from harness.task where list = MINE and id = 'task-002'
"""
ATTACKS = {
    "a check": (
        f"{PUT} validation = '{EVIL}' where list = MINE and id = 'task-002'",
        "drop trigger only_author on harness.task",
    ),
    "a cleanup": (
        f"{PUT} on_failure = '{{}}' where list = MINE and id = 'task-002'",
        "drop trigger only_author on harness.task",
    ),
    "what a task is": (
        f"{PUT} brief = '{{}}' where list = MINE and id = 'task-002'",
        "drop trigger only_author on harness.task",
    ),
    "a priority": (
        f"{PUT} priority = 0 where list = MINE and id = 'task-002'",
        "drop trigger only_author on harness.task",
    ),
    "what a task waits for": (
        "update harness.task set waits = 0 where list = MINE and id = 'task-002'",
        "grant update (waits) on harness.task to harness_worker",
    ),
    "an outcome of another": (
        f"{PUT} status = 'completed', done = true where list = MINE and id = 'task-001'",
        "drop trigger keep_claim on harness.task",
    ),
    "a claim of another": (
        f"{PUT} fence = fence + 1, worker = 'me' where list = MINE and id = 'task-001'",
        "drop trigger keep_claim on harness.task",
    ),
    "an older fence": (
        f"{PUT} fence = fence - 1 where list = MINE and id = 'task-002'",
        "drop trigger keep_claim on harness.task",
    ),
    "an earlier change": (
        "update harness.task set ver = 0 where list = MINE and id = 'task-002'",
        "drop trigger keep_claim on harness.task",
    ),
    "a task with a new check": (
        COPY.format(f"'{EVIL}'", "on_failure"),
        "drop trigger copy_commands on harness.task",
    ),
    "a task with a new cleanup": (
        COPY.format("validation", '\'{"cleanup": "evil"}\''),
        "drop trigger copy_commands on harness.task",
    ),
    "a proposal with a new check": (
        (
            "insert into harness.proposal (list, id, brief, document, validation, on_failure) "
            f"values (MINE, 'proposed-1', '{{}}', '{{}}', '{EVIL}', '{{\"cleanup\": null}}')"
        ),
        "drop trigger copy_commands on harness.proposal",
    ),
    "a dependency": (
        "insert into harness.dep (list, task, needs) values (MINE, 'task-001', 'task-002')",
        "drop trigger new_edges on harness.dep",
    ),
    "no dependency": (
        "delete from harness.dep where list = MINE",
        SPARE.format("dep"),
    ),
    "no task": (
        "delete from harness.task where list = MINE",
        SPARE.format("task"),
    ),
    "settings": (
        "update harness.list set shell = '{}' where key = MINE",
        "drop trigger only_author on harness.list",
    ),
    "a name": (
        "update harness.list set name = 'taken' where key = MINE",
        "grant update (name) on harness.list to harness_worker; drop trigger only_owner on harness.list",
    ),
    "no list": (
        "delete from harness.list where key = MINE",
        f"grant delete on harness.list to harness_worker; {SPARE.format('list')}",
    ),
    "no events": (
        "delete from harness.event where list = MINE",
        f"grant delete on harness.event to harness_worker; {SPARE.format('event')}",
    ),
    "who has changed it": (
        "insert into harness.event (list, op, machine, login) values (MINE, gen_random_uuid(), 'm', 'you')",
        "grant insert (login) on harness.event to harness_worker",
    ),
    "counts": (
        "update harness.tally set total = 0 where list = MINE",
        f"grant update on harness.tally to harness_worker; {SPARE.format('tally')}",
    ),
    "a member": (
        (
            "insert into harness.member values (MINE, quote_ident(session_user)::regrole, 'owner') "
            "on conflict (list, login) do update set role = 'owner'"
        ),
        f"grant insert, update on harness.member to harness_worker; {SPARE.format('member')}",
    ),
    "what was removed": (
        "insert into harness.removed values (MINE, 'task-002', 9)",
        SPARE.format("removed"),
    ),
    "a function of one's own": (
        "create function harness.lists(text, text) returns bigint language sql as 'select 1'",
        "grant create on schema harness to harness_worker",
    ),
}

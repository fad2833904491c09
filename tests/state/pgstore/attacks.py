"""What a hostile worker of the list MINE types, by what lets it happen once it is gone: each is needed."""

from __future__ import annotations

from harness_lib.state.pgstore import rows
from harness_lib.task import Task, Validation

EVIL = rows.texts_of(Task("evil", validation=Validation("evil")))["validation"]
PUT = "update harness.task set ver = ver + 1, "
HELD = "where list = MINE and id = 'task-001'"
FREE = "where list = MINE and id = 'task-002'"
SPARE = "alter table harness.{} disable row level security"
COPY = f"""
insert into harness.task (list, id, place, fence, document, validation, on_failure)
select list, 'task-666', 666, 0, document, {{}}, {{}} from harness.task {FREE}
"""
BY_GUARD = {
    "drop trigger only_author on harness.task": {
        "a check": f"{PUT} validation = '{EVIL}' {FREE}",
        "a cleanup": f"{PUT} on_failure = '{{}}' {FREE}",
        "what a task is": f"{PUT} brief = '{{}}' {FREE}",
        "a priority": f"{PUT} priority = 0 {FREE}",
    },
    "drop trigger keep_claim on harness.task": {
        "an outcome of another": f"{PUT} status = 'completed', done = true {HELD}",
        "a claim of another": f"{PUT} fence = fence + 1, worker = 'me' {HELD}",
        "an older fence": f"{PUT} fence = fence - 1 {FREE}",
        "an earlier change": f"update harness.task set ver = 0 {FREE}",
    },
    "drop trigger copy_commands on harness.task": {
        "a task with a new check": COPY.format(f"'{EVIL}'", "on_failure"),
        "a task with a new cleanup": COPY.format("validation", '\'{"cleanup": "evil"}\''),
    },
    "drop trigger copy_commands on harness.proposal": {
        "a proposal with a new check": (
            "insert into harness.proposal (list, id, brief, document, validation, on_failure) "
            f"values (MINE, 'proposed-1', '{{}}', '{{}}', '{EVIL}', '{{\"cleanup\": null}}')"
        ),
    },
    "drop trigger new_edges on harness.dep": {
        "a dependency": "insert into harness.dep (list, task, needs) values (MINE, 'task-001', 'task-002')",
    },
    "drop trigger only_author on harness.list": {
        "settings": "update harness.list set shell = '{}' where key = MINE",
    },
    "grant update (waits) on harness.task to harness_worker": {
        "what a task waits for": f"update harness.task set waits = 0 {FREE}",
    },
    "grant update (name) on harness.list to harness_worker; drop trigger only_owner on harness.list": {
        "a name": "update harness.list set name = 'taken' where key = MINE",
    },
    SPARE.format("dep"): {"no dependency": "delete from harness.dep where list = MINE"},
    SPARE.format("task"): {"no task": "delete from harness.task where list = MINE"},
    SPARE.format("removed"): {
        "what was removed": "insert into harness.removed values (MINE, 'task-002', 9)",
    },
    f"grant delete on harness.list to harness_worker; {SPARE.format('list')}": {
        "no list": "delete from harness.list where key = MINE",
    },
    f"grant delete on harness.event to harness_worker; {SPARE.format('event')}": {
        "no events": "delete from harness.event where list = MINE",
    },
    f"grant update on harness.tally to harness_worker; {SPARE.format('tally')}": {
        "counts": "update harness.tally set total = 0 where list = MINE",
    },
    f"grant insert, update on harness.member to harness_worker; {SPARE.format('member')}": {
        "a member": (
            "insert into harness.member values (MINE, quote_ident(session_user)::regrole, 'owner') "
            "on conflict (list, login) do update set role = 'owner'"
        ),
    },
    "grant insert (login) on harness.event to harness_worker": {
        "who has changed it": (
            "insert into harness.event (list, op, machine, login) "
            "values (MINE, gen_random_uuid(), 'm', 'you')"
        ),
    },
    "grant create on schema harness to harness_worker": {
        "a function of one's own": (
            "create function harness.lists(text, text) returns bigint language sql as 'select 1'"
        ),
    },
}
ATTACKS = {name: (sql, gone) for gone, attacks in BY_GUARD.items() for name, sql in attacks.items()}

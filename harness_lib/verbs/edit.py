"""`harness edit ID`: change a task.

A worker may not change the check of its own task.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_lib import typed
from harness_lib.attempts import baseline
from harness_lib.checks import check_of
from harness_lib.core import add_tasks, held_out, ownership, quoting, rights, trust
from harness_lib.core.context import Context, Reply
from harness_lib.errors import RefusedError, UsageError
from harness_lib.records import given
from harness_lib.rules import attempts, selection, transitions
from harness_lib.runs import next_step
from harness_lib.state.api import Questions
from harness_lib.system.git import worktrees
from harness_lib.task import MODES, HeldOut, Task
from harness_lib.terminal import options

SUMMARY = "change a task, or the settings of the list"
EXAMPLE = 'harness edit task-001 --validate "pytest -q tests/test_rate.py" --priority P0'
HELP_ORDER = 310

SHOWN = 120
# New values by the path of the field. An empty text or list clears an optional field.
Changes = Mapping[str, Any]


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task; without it the options of the whole list apply")
    task = parser.add_argument_group("the task (an empty text clears a field)")
    options.add_task(task, editing=True)
    whole = parser.add_argument_group("the whole list (0 is no limit)")
    whole.add_argument("--mode", choices=MODES, help="one session at a time, or many workers")
    whole.add_argument("--max-tasks-per-session", metavar="N", type=int)
    whole.add_argument("--max-sessions", metavar="N", type=int)
    whole.add_argument(
        "--final-check",
        action=BooleanOptionalAction,
        help="hold an agent in a chat until the checks of all tasks have run once more at the end",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    changes = options.typed_task(args)
    whole = {
        "concurrency_mode": args.mode,
        "max_tasks_per_session": args.max_tasks_per_session,
        "max_sessions": args.max_sessions,
        "final_check": args.final_check,
    }
    of_list = {name: value for name, value in whole.items() if value is not None}
    if args.id is None and changes:
        raise UsageError("The id of the task is missing.", "Name it: harness edit task-001 …")
    if args.id is not None and of_list:
        raise UsageError("This is set for the whole list, not for a task.", "Leave the id out.")
    if not of_list and not changes:
        raise UsageError("No change was given.", "See: harness edit --help")
    if args.id is not None:
        old = ownership.require_task(ctx.ask(), args.id)
        return run(
            ctx, args.id, held_out.typed_with(ctx, changes, old, typed.harness("edit", old.id, rest="…"))
        )
    return rights.edit_settings(ctx, of_list)


def run(ctx: Context, task_id: str, changes: Changes) -> Reply:
    """Set the fields of `task_id` in `changes`, and end its halt unless finished work waits for an answer."""
    while True:
        questions = ctx.ask()
        old = ownership.require_task(questions, task_id)
        if "depends_on" in changes:
            changes = {**changes, "depends_on": ownership.ids_of(questions, changes["depends_on"])}
        _require_right(ctx, old, changes)
        new = _changed(old, changes)
        if new == old:
            return Reply(
                f"{old.id} already has these values; nothing was changed.",
                task=old,
                next=_next(ctx, questions, old),
            )
        if new.validation.cwd != old.validation.cwd:
            add_tasks.require_inside(ctx, new)
        # The gate needs git, and git must not run under the lock: prepare it, then look again.
        regated = _with_new_gate(ctx, old, new)
        with rights.change(ctx, [regated] if _has_seen(ctx, old, regated) else ()) as tx:
            if tx.task(old.id) != old:
                continue
            baseline.keep(ctx, regated)
            tx.replace(regated)
            if regated.depends_on != old.depends_on:
                add_tasks.require_sound(tx, (regated,))
            rights.lift_halts(tx, regated)
            rights.log(tx, ctx, f"edited {_describe_changes(old, regated)}", old.id)
        return _reply(old, regated, tuple(tx.warnings), _next(ctx, ctx.ask(), regated))


def _has_seen(ctx: Context, old: Task, new: Task) -> bool:
    """Return whether the user knows each command of `new`: it was trusted here before, or typed now."""
    if trust.knows(ctx, old):
        return True
    before, after = ((check_of(task).text, task.on_failure.cleanup) for task in (old, new))
    return not any(now and now == was for was, now in zip(before, after, strict=True))


def _require_right(ctx: Context, task: Task, changes: Changes) -> None:
    if task.status == "completed":
        raise RefusedError(
            f"{task.id} is completed; what its check has proven cannot be changed afterwards.",
            f"To have it done again: {typed.harness('retry', task.id)}",
        )
    new = _changed(task, changes)
    _require_user_for_its_check(ctx, task, new)
    if task.status != "in_progress" or new.validation == task.validation:
        return
    if task.step not in (None, "rollback"):
        raise RefusedError(
            f"{task.id} has passed its check, and its work is being committed or merged.",
            f"Let that end first: {typed.harness('show', task.id)}. "
            f"To have it done again with another check: {typed.harness('retry', task.id)}",
        )
    if ctx.shared and task.machine not in (None, ctx.machine):
        # What the attempt may not weaken is taken from its work tree, and a copy of it is kept there.
        raise RefusedError(
            f"{task.id} is in progress on {task.machine}, where its check can be changed.",
            f"Type it there, or here once that attempt has ended: {typed.harness('show', task.id)}",
        )
    agent = rights.acting_agent(ctx)
    if agent or (ctx.holds(task) and not ctx.at_terminal):
        give_up = typed.harness(
            "fail", task.id, "--category", "CONFIG", rest="--message 'what is wrong with the check'"
        )
        raise RefusedError(
            f"{task.id} is in progress; its worker ({agent or ctx.owner.worker}) may not change its check.",
            f"The user can, in a terminal. Or give up, saying why: {give_up}",
        )


def _require_user_for_its_check(ctx: Context, task: Task, new: Task) -> None:
    """Raise RefusedError inside an agent whose own work this check decides on.

    For a task in progress the caller reports it, with another solution.
    """
    check_changes = (task.validation, task.max_attempts) != (new.validation, new.max_attempts)
    if check_changes and task.status == "in_progress" and task.max_attempts == new.max_attempts:
        return
    if check_changes or attempts.is_for_user(task):
        rights.require_check_of_another(ctx, task, typed.harness("edit", task.id, rest="…"))


def _changed(task: Task, changes: Changes) -> Task:
    meant = {
        field.path: _normalized(field, changes[field.path]) for field in given.FIELDS if field.path in changes
    }
    new = given.with_values(task, meant)
    if not new.title.strip():
        give = typed.harness("edit", task.id, rest='--title "what is to be done"')
        raise UsageError("A task needs a title.", give)
    if new == task:
        return task
    add_tasks.require_writable(new)
    return new if _keeps_its_halt(task, new) else transitions.halt(new, None)


def _keeps_its_halt(old: Task, new: Task) -> bool:
    """Return whether `new` still waits for what only `harness accept` and `return` answer."""
    if old.halt_kind == "JUDGES":
        # Another check, or other protected files, may have nothing against the work.
        return new.validation == old.validation
    return attempts.asks_a_person(old) or attempts.takes_an_answer(old.halt_kind)


def _normalized(field: given.Given, value: Any) -> Any:
    """Return the typed `value` without empty texts and items and without duplicates."""
    if field.kind.form == "text" and field.null:
        return value.strip() or None
    if field.kind.form == "list":
        named = [each for each in value if each]
        return tuple(dict.fromkeys(named) if field.typed.splits else named)
    return value


def _with_new_gate(ctx: Context, old: Task, new: Task) -> Task:
    """Return `new` with a gate for its new check, if an attempt is under way."""
    if not old.gate or new.validation == old.validation:
        return new
    regated = baseline.regate(_at_its_work_tree(ctx, old), new)
    unmoved = (old.validation.protect, old.validation.cwd) == (new.validation.protect, new.validation.cwd)
    if unmoved and regated.gate:
        # Taken at the base, as at the claim. Taken now, it would accept the attempt's changes to these files.
        same = check_of(old).text == check_of(new).text
        programs = old.gate.programs if same else regated.gate.programs
        gate = regated.gate._replace(protected=old.gate.protected, programs=programs)
        regated = regated._replace(gate=gate)
    return regated


def _at_its_work_tree(ctx: Context, task: Task) -> Context:
    """Return `ctx` for the work tree of the attempt, if that still exists."""
    if task.worktree is None or task.worktree == str(ctx.git.top):
        return ctx
    worktree = worktrees.at(ctx.git, Path(task.worktree))
    return ctx.at(worktree) if worktree else ctx


def _describe_changes(old: Task, new: Task) -> str:
    before, after = given.values(old), given.values(new)
    return "; ".join(
        f"{name} {_as_json(before[name])} -> {_as_json(after[name])}"
        for name in before
        if before[name] != after[name]
    )


def _as_json(value: object) -> str:
    if isinstance(value, HeldOut):
        value = value.sha256
    return quoting.one_line(json.dumps(value, ensure_ascii=False), SHOWN)


def _next(ctx: Context, questions: Questions, task: Task) -> str | None:
    if task.status == "in_progress":
        return typed.harness("show", task.id) if task.halt else next_step.of_task(ctx, questions, task)
    if selection.is_permanent(task):
        return typed.harness("retry", task.id)
    return ownership.next_command(ctx, questions)


def _reply(old: Task, new: Task, warnings: tuple[str, ...], then: str | None) -> Reply:
    lines = [f"{new.id} edited: {_describe_changes(old, new)}"]
    if new.halt:
        lines.append(f"it still waits for you: {typed.harness('show', new.id)}")
    elif old.halt:
        lines.append(f"it was halted ({quoting.one_line(old.halt, SHOWN)}) and can go on")
    if new.status == "in_progress" and not new.intent and old.validation != new.validation:
        lines.append("the new check decides on its attempt in progress")
    if not check_of(new).is_given:
        warnings = (*warnings, add_tasks.no_check(new.id))
    return Reply("\n".join(lines), task=new, next=then, warnings=warnings)

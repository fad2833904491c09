"""`harness remove ID`: remove a task from the list."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.core import lifecycle, ownership, quoting, rights
from harness_lib.core.context import Context, Reply
from harness_lib.errors import RefusedError
from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.text import some

SUMMARY = "remove a task from the list"
EXAMPLE = "harness remove task-001"
HELP_ORDER = 320


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="the task")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Remove the task; its logs and the rescued work of its attempts stay."""
    with rights.change(ctx) as tx:
        task = ownership.require_task(tx, args.id)
        if task.status == "in_progress":
            raise ownership.worked_on(task, "that work would have no owner")
        rights.require_check_of_another(ctx, task, typed.harness("remove", task.id))
        _require_unneeded(tx, task)
        tx.remove(task.id)
        rights.lift_halts(tx, task)
        title = json.dumps(quoting.title(task), ensure_ascii=False)
        rights.log(tx, ctx, f"removed {title} ({task.status})", task.id)
        lifecycle.disable_hooks_when_finished(tx, ctx)
    kept = f"\nthe list as it was is kept in {ctx.store.backup_file.name}" if not ctx.shared else ""
    return Reply(
        f"removed {task.id}: {quoting.title(task)}{kept}",
        task=task,
        next="harness status",
        warnings=tuple(tx.warnings),
    )


def _require_unneeded(questions: Questions, task: Task) -> None:
    needing = questions.dependents(task.id)
    if needing:
        let_go = " && ".join(_let_go(each, task.id) for each in questions.tasks(needing[:5]))
        raise RefusedError(
            f"{some(needing)} {'depends' if len(needing) == 1 else 'depend'} on {task.id}.",
            f"First let nothing depend on it: {let_go}",
        )


def _let_go(task: Task, gone: str) -> str:
    """Return the command after which `task` no longer depends on `gone`; a completed one cannot be edited."""
    if task.status == "completed":
        return typed.harness("remove", task.id)
    others = ",".join(each for each in task.depends_on if each != gone)
    return typed.harness("edit", task.id, "--depends-on", others)

"""`harness add`: append a task."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.checks import check_of
from harness_lib.core import add_tasks, lint_tasks, quoting
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.task import Task


def run(ctx: Context, draft: Task) -> Reply:
    """Append `draft` under an id of its own.

    Raises UsageError if its title is empty or it depends on nothing that exists.
    """
    if not draft.title.strip():
        raise UsageError("A task needs a title.", 'harness add "what is to be done" --validate "command"')
    task, is_trusted, then = add_tasks.add(ctx, draft)
    warnings = [] if check_of(task).is_given else [add_tasks.no_check(task.id)]
    warnings += lint_tasks.cannot_fail(ctx.git.top, task)
    if not is_trusted:
        warnings.append(add_tasks.NOT_TRUSTED)
    return Reply(
        "add",
        f"added {task.id} [{task.priority}]: {quoting.title(task)}" + _where_it_runs(ctx, task),
        task=task,
        next=then,
        warnings=tuple(warnings),
    )


def _where_it_runs(ctx: Context, task: Task) -> str:
    """Say where the check will run, where somebody who stands beside the list would expect another place."""
    top = ctx.git.top
    beside = ctx.root.path != top and ctx.root.path.is_relative_to(top)
    if not check_of(task).is_given or task.validation.cwd or not beside:
        return ""
    cwd = typed.word(ctx.root.path.relative_to(top))
    return f"\nIts check runs at the top of the repository, {top}; with --cwd {cwd} it runs beside the list."

"""`harness why`: why a task, or each that waits, may or may not be claimed, and what would help."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.core import nothing_to_do, ownership, quoting
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.rules import failures, leases
from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.verbs import status

SHOWN = 10
LENGTH = 400


def run(ctx: Context, task_id: str) -> Reply:
    """Return the reasons for or against claiming the task; UsageError if there is no such task."""
    questions = ctx.store.ask()
    task = ownership.require_task(questions, task_id)
    why = questions.why(task.id)
    reasons = [quoting.one_line(reason, LENGTH) for reason in why.reasons]
    lines = [status.one_line(task), *(f"  {reason}" for reason in reasons[:SHOWN])]
    if len(reasons) > SHOWN:
        lines.append(f"  … and {len(reasons) - SHOWN} more")
    return Reply(
        "why",
        "\n".join(lines),
        task=task,
        next=remedy(ctx, questions, task),
        warnings=tuple(questions.warnings),
        extra={"eligible": why.eligible, "reasons": reasons[:SHOWN]},
    )


def run_all(ctx: Context) -> Reply:
    """Return which task comes next, and of each that may not be claimed what keeps it, a line each."""
    questions = ctx.store.ask()
    following = questions.next_ready()
    may = {task.id for task in questions.claimable()}
    told = [task for task in questions.interesting() if not task.is_done]
    kept = [task for task in told if task is following or task.id not in may]
    lines = [f"next: {status.one_line(following)}"] if following else []
    facts = []
    for task in kept[:SHOWN]:
        why = questions.why(task.id)
        reasons = [quoting.one_line(reason, LENGTH) for reason in why.reasons[:SHOWN]]
        facts.append({"id": task.id, "eligible": why.eligible, "reasons": reasons})
        if task is not following:
            lines += [status.one_line(task), f"  {reasons[0]}"]
    if len(kept) > SHOWN:
        lines.append(f"… and {len(kept) - SHOWN} more that may not be claimed now (harness status --all)")
    return Reply(
        "why",
        "\n".join(lines) or (nothing_to_do.words(questions, "done")),
        task=following,
        next=status.upcoming(ctx, questions),
        warnings=tuple(questions.warnings),
        extra={"tasks": facts},
    )


def remedy(ctx: Context, questions: Questions, task: Task) -> str | None:
    """Return the command that brings `task` a step nearer to being done; None for a completed one."""
    if task.is_done:
        return None
    if task.status == "completed":
        return "harness start"
    if task.status == "in_progress":
        return _in_progress(ctx, questions, task)
    if task.halt is not None:
        return _halted(ctx, task)
    return _waiting(questions, task)


def _waiting(questions: Questions, task: Task) -> str:
    rings = questions.rings()
    if task.id in rings:
        return typed.harness("edit", task.id, "--depends-on", "ID")
    cause = root_cause(questions, task)
    if cause is not None:
        return typed.harness("why" if cause in rings else "retry", cause)
    awaited = _awaited(questions, task)
    return typed.harness("why", awaited) if awaited else typed.harness("claim", task.id)


def _in_progress(ctx: Context, questions: Questions, task: Task) -> str:
    if task.halt is not None:
        return _halted(ctx, task)
    if ownership.is_mine(questions, task, ctx):
        return typed.harness("finish", task.id)
    if leases.expired(task, ctx.clock.now()) or task.claimed_by is None:
        return "harness recover"
    return "harness status"


def _halted(ctx: Context, task: Task) -> str:
    if not task.validation.command and not ownership.is_judged(ctx, task):
        return typed.give_check(task.id)
    return typed.harness("show", task.id)


def root_cause(questions: Questions, task: Task) -> str | None:
    """Return the task whose failure for good keeps `task` from running: itself, or one it waits for.

    A task that is blocked is passed over for what blocks it: retrying that one helps them both.
    """
    seen: set[str] = set()
    waiting = [task.id]
    found: str | None = None
    while waiting:
        current = questions.task(waiting.pop())
        if current is None or current.id in seen:
            continue
        seen.add(current.id)
        if failures.is_permanent(current):
            found = current.id
            # Whatever failed for good below this one came first.
            waiting = []
        waiting += [other.id for other in questions.tasks(current.depends_on) if not other.is_done]
    return found


def _awaited(questions: Questions, task: Task) -> str | None:
    return next((other.id for other in questions.tasks(task.depends_on) if not other.is_done), None)

"""`harness why`: why a task, or each that waits, may or may not be claimed, and what would help."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.core import nothing_to_do, ownership, quoting
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.runs import overview, remedies
from harness_lib.terminal.screen import Screen

SUMMARY = "why a task can or cannot be claimed"
EXAMPLE = "harness why task-003"
HELP_ORDER = 190

SHOWN = 10
LENGTH = 400


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task (default: the next one, and each that waits)")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness why`."""
    return run(ctx, args.id) if args.id else run_all(ctx)


def run(ctx: Context, task_id: str) -> Reply:
    """Return the reasons for or against claiming the task; UsageError if there is no such task."""
    questions = ctx.store.ask()
    task = ownership.require_task(questions, task_id)
    why = questions.why(task.id)
    reasons = [quoting.one_line(reason, LENGTH) for reason in why.reasons]
    lines = [overview.one_line(task), *(f"  {reason}" for reason in reasons[:SHOWN])]
    if len(reasons) > SHOWN:
        lines.append(f"  … and {len(reasons) - SHOWN} more")
    return Reply(
        "why",
        "\n".join(lines),
        task=task,
        next=remedies.remedy(ctx, questions, task) or typed.harness("show", task.id),
        warnings=tuple(questions.warnings),
        extra={"eligible": why.eligible, "reasons": reasons[:SHOWN]},
    )


def run_all(ctx: Context) -> Reply:
    """Return which task comes next, and of each that may not be claimed what keeps it, a line each."""
    questions = ctx.store.ask()
    following = questions.next_ready()
    may = {task.id for task in questions.claimable()}
    unfinished = [task for task in questions.interesting() if not task.is_done]
    kept = [task for task in unfinished if task is following or task.id not in may]
    lines = [f"next: {overview.one_line(following)}"] if following else []
    facts = []
    for task in kept[:SHOWN]:
        why = questions.why(task.id)
        reasons = [quoting.one_line(reason, LENGTH) for reason in why.reasons[:SHOWN]]
        facts.append({"id": task.id, "eligible": why.eligible, "reasons": reasons})
        if task is not following:
            lines += [overview.one_line(task), f"  {reasons[0]}"]
    if len(kept) > SHOWN:
        lines.append(f"… and {len(kept) - SHOWN} more that may not be claimed now (harness status --all)")
    return Reply(
        "why",
        "\n".join(lines) or (nothing_to_do.words(questions, "done")),
        task=following,
        next=overview.upcoming(ctx, questions),
        warnings=tuple(questions.warnings),
        extra={"tasks": facts},
    )

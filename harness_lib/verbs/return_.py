"""`harness return ID "TEXT"`: send work that waits for the user back to an agent; no attempt is counted."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.attempts import complete, requeue, rollback
from harness_lib.core import ownership, quoting, rights
from harness_lib.core.context import Context, Reply
from harness_lib.errors import UsageError
from harness_lib.rules import transitions
from harness_lib.task import Task

SUMMARY = "send work that waits for the user back to an agent; no attempt is counted"
EXAMPLE = 'harness return task-001 "read the key from the environment; add no .env"'
HELP_ORDER = 350


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="the task")
    parser.add_argument("text", help="what is to be changed; the next agent reads it")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Make the task pending, keep its work, and pass the text to the next agent."""
    task = ownership.require_task(ctx.store.ask_to_change(), args.id)
    complete.require_waiting(task)
    rights.require_user(ctx, f"What becomes of {task.id}", complete.return_command(task))
    place = complete.place(ctx, task)
    said = quoting.one_line(args.text, quoting.REASON_LENGTH)
    if not said:
        raise UsageError("Say what is to be changed.", complete.return_command(task))
    reason = f"The user has looked at this work and returns it: {said}"
    returned, warnings = _taken_out(place, task, reason) if task.status == "in_progress" else (task, ())
    with rights.change(ctx) as tx:
        waiting = complete.require_waiting(ownership.require_task(tx, task.id))
        current = transitions.halt(waiting, None)
        if current.handback:
            current = current._replace(handback=current.handback._replace(reason=reason, accepted=False))
        tx.replace(current)
        complete.let_go_on(tx, task)
        rights.log(tx, ctx, f"returned {said}", task.id)
        then = ownership.next_command(ctx, tx)
    how = "with its work kept" if complete.is_kept(ctx, task) else "and begins anew, as its work is gone"
    return Reply(
        f"{returned.id} is pending again {how}; no attempt was counted.",
        task=current,
        next=then,
        warnings=warnings,
    )


def _taken_out(ctx: Context, task: Task, reason: str) -> tuple[Task, tuple[str, ...]]:
    """Move the work out of a work tree, and keep it."""
    rollback.require_trust(ctx, task)
    ctx.session = complete.session_of(ctx, ctx.ask(), task)
    ended = requeue.because_user_said(ctx, task, reason)
    return ended.task, ended.warnings

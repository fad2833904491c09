"""`harness release`: hand a claim back; no attempt is counted, and the work is rescued."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import timestamps, typed
from harness_lib.attempts import outcome, requeue, rescue_refs, rollback
from harness_lib.core import lifecycle, ownership, rights, sessions
from harness_lib.core.context import Context, Reply
from harness_lib.rules import attempts

SUMMARY = "hand a claimed task back; no attempt is counted"
EXAMPLE = "harness release task-001"
HELP_ORDER = 170


WAITS = "It was handed back while it waited for the user's answer."


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task (default: the one you hold)")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Make the held task pending and go back to its base; its work is kept in a rescue ref.

    Finished work that waits for the user's answer waits on.
    """
    if reply := _ended_for_user(ctx, args.id):
        return reply
    held = ownership.require_settled(ctx, args.id)
    verdict = outcome.Verdict("TASK_EXEC", "released", attempts.Ending.RELEASED)
    with lifecycle.halting_on_error(ctx, held.id):
        outcome.require_no_operation(ctx.git, held, typed.harness("release", held.id))
        rollback.require_trust(ctx, held)
        waits = attempts.takes_an_answer(held.halt_kind)
        if waits:
            ended = requeue.because_user_said(ctx, held, WAITS)
        else:
            ended = rollback.roll_back(ctx, held, verdict)
    lines = [f"{ended.task.id} is pending again; no attempt was counted."]
    if ended.rescue:
        lines.append(f"the work is kept: {rescue_refs.show_command(ended.rescue)}")
    if waits:
        lines.append(f"the work still waits for the user: {typed.harness('show', ended.task.id)}")
    return Reply(
        "\n".join(lines),
        session=ctx.session.number,
        task=ended.task,
        next=sessions.unless_held(ctx.ask(), ctx, sessions.CLAIM),
        warnings=ended.warnings,
        extra={"rescue": ended.rescue},
    )


def _ended_for_user(ctx: Context, name: str | None) -> Reply | None:
    """End the lease of a worker without a living session, for the user; None where that is not asked.

    Agents of the legacy protocol write none, or one that ends in hours, and nobody else could take it over.
    """
    if name is None or rights.acting_agent(ctx):
        return None
    with ctx.transaction("tasks") as tx:
        task = ownership.require_task(tx, name)
        is_left = tx.concurrent and task.status == "in_progress" and not ctx.holds(task)
        if not is_left or ctx.own_session(tx) or sessions.worker_is_live(task.claimed_by, tx, ctx):
            return None
        ended = task._replace(lease_expires_at=timestamps.render(tx.now))
        tx.replace(ended)
        rights.log(tx, ctx, f"released from {task.claimed_by or 'nobody'}", task.id)
    return Reply(f"The claim of {task.id} has ended.", task=ended, next=sessions.START)

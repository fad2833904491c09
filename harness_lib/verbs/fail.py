"""`harness fail`: the agent gives up; rescue and rollback as after a failed check."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.attempts import outcome, rescue_refs, rollback
from harness_lib.core import lifecycle, ownership, quoting, stops
from harness_lib.core.context import Context, Reply
from harness_lib.errors import Exit, RefusedError, UsageError
from harness_lib.rules import attempts, selection, transitions
from harness_lib.task import CATEGORIES, Category, Task

SUMMARY = "give up this attempt: roll back, and keep the work in a rescue ref"
EXAMPLE = 'harness fail task-001 --category TASK_EXEC --message "the API has no such call"'
HELP_ORDER = 160

STOPPED_WITH = {"CONFIG": Exit.CONFIG, "ENV_SETUP": Exit.ENV_SETUP}


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="the task (default: the one you hold)")
    parser.add_argument(
        "--category", choices=CATEGORIES, default="TASK_EXEC", help="what went wrong (default: TASK_EXEC)"
    )
    parser.add_argument("--message", required=True, help="in your words, for the next attempt to read")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Roll back the attempt at the held task, with the category that was typed.

    CONFIG and ENV_SETUP halt the session (exit 3 and 7) and cost no attempt: the user must fix them.
    Exit 0 for all others.
    """
    if not args.message.strip():
        raise UsageError(
            "Say what went wrong.", 'harness fail task-001 --category TASK_EXEC --message "what happened"'
        )
    held = ownership.require_settled(ctx, args.id)
    if attempts.takes_an_answer(held.halt_kind):
        raise RefusedError(
            f"The work of {held.id} has passed its check and waits for the user's answer.",
            "Ask the user, and end your turn. To hand the task back, so that it waits on: "
            f"{typed.harness('release', held.id)}",
        )
    strategy = selection.STRATEGIES[args.category]
    verdict = outcome.Verdict(args.category, quoting.one_line(args.message), strategy.ending)
    again = typed.harness("fail", held.id, "--category", args.category, "--message", args.message)
    with lifecycle.halting_on_error(ctx, held.id):
        outcome.require_no_operation(ctx.git, held, again)
        rollback.require_trust(ctx, held)
        ended = rollback.roll_back(ctx, held, verdict)
    if strategy.stop:
        _halt(ctx, held, ended.task, args.category, args.message)
    return _reply(ctx, ended, args.category, strategy.stop)


def _halt(ctx: Context, held: Task, task: Task, category: Category, message: str) -> None:
    with ctx.transaction() as tx:
        words = f"{category}: {quoting.one_line(message)}"
        why = attempts.Halt(attempts.of_category(category), words)
        session = ctx.own_session(tx)
        if session:
            lifecycle.halt(tx, session, why, task.id)
        current = tx.task(task.id)
        if category == "CONFIG" and current and current.fence == held.fence:
            tx.replace(transitions.halt(current, why))


def _reply(ctx: Context, ended: outcome.Ended, category: Category, stop: str) -> Reply:
    task = ended.task
    used = f"attempts used: {task.attempts} of {task.max_attempts}"
    undone = "was rolled back" if ended.rolled_back else "was left as it is"
    lines = [f"{task.id} failed ({category}) and {undone}; {used}"]
    if ended.rescue:
        lines.append(f"the work is kept: {rescue_refs.show_command(ended.rescue)}")
    if stop:
        lines.append(f"stop here: {stop}")
    then = stops.after_attempt(ctx, ended.stop)
    return Reply(
        "\n".join(filter(None, (*lines, then.words))),
        exit=STOPPED_WITH.get(category, Exit.DONE) if stop else Exit.DONE,
        session=ctx.session.number,
        task=task,
        stop=ended.stop,
        next="harness stop" if stop and not ended.stop else then.next,
        warnings=ended.warnings,
        extra={"rescue": ended.rescue},
    )

"""`harness retry ID`: reset a failed task, or a completed one whose check fails now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.core import ownership, rights
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import RefusedError, UsageError
from harness_lib.rules import attempts, transitions
from harness_lib.state.api import Tx
from harness_lib.task import Task
from harness_lib.terminal.render import Screen
from harness_lib.text import some

SUMMARY = "reset a failed or completed task, and the tasks that it blocked"
EXAMPLE = "harness retry task-001"
HELP_ORDER = 330

NAMED = 10


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("id", help="the task")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Make the task pending with all its attempts, and also the tasks that failed only because of it.

    Its errors stay, for the next attempt.
    Raises UsageError (no such task; it would fail again at once), RefusedError (in progress).
    """
    with rights.change(ctx) as tx:
        old = ownership.require_task(tx, args.id)
        if not transitions.may("reset", old):
            raise RefusedError(
                f"{old.id} is in progress (by {old.claimed_by or 'nobody'}); a new start would lose it.",
                f"Its worker can hand it back: {typed.harness('release', old.id)}. "
                "If nobody works on it any more: harness start",
            )
        if attempts.is_for_user(old):
            rights.require_check_of_another(ctx, old, typed.give_check(old.id))
        new = transitions.reset(old)
        revived = _revive(tx, new)
        then = ownership.next_command(ctx, tx)
        if new == old and not revived:
            return Reply("retry", f"{old.id} has nothing to reset.", task=old, next=then)
        rights.lift_halts(tx, new)
        rights.log(
            tx, ctx, f"reset was {old.status} after {old.attempts}/{old.max_attempts} attempts", old.id
        )
        for task in revived:
            rights.log(tx, ctx, f"reset with {old.id}", task.id)
    return _reply(old, new, revived, tuple(tx.warnings), then)


def _revive(tx: Tx, new: Task) -> list[Task]:
    """Store `new`, and revive the tasks that it had blocked; return these.

    A task that something else blocks, too, stays failed: it would be marked again at once.
    """
    before = tx.tasks((new.id, *tx.blocked_through(new.id)))
    for task in before:
        tx.replace(new if task.id == new.id else transitions.reset(task))
    again = {finding.task_id: finding.message for finding in tx.unreachable()}
    if new.id in again:
        less = typed.harness("edit", new.id, rest="--depends-on 'ID,ID'")
        raise UsageError(
            f"{new.id} would fail again at once. {again[new.id]}.",
            f"Retry the task that it waits for, or let it wait for less: {less}",
        )
    for task in before:
        if task.id in again:
            tx.replace(task)
        else:
            tx.forget_attempts(task.attempts)
    return [task for task in tx.tasks(each.id for each in before[1:]) if task.id not in again]


def _reply(old: Task, new: Task, revived: list[Task], warnings: tuple[str, ...], then: str | None) -> Reply:
    attempts = "1 attempt" if new.max_attempts == 1 else f"{new.max_attempts} attempts"
    lines = [f"{new.id} is pending again with {attempts} (it was {old.status})."]
    if old.status == "completed":
        lines.append("Its commit stays in the history: the next attempt builds on it.")
    if revived:
        names = some([task.id for task in revived], NAMED)
        lines.append(f"pending again with it, because only it had blocked them: {names}")
    return Reply(
        "retry",
        "\n".join(lines),
        task=new,
        next=then,
        warnings=warnings,
        extra={"revived": [task.id for task in revived[:NAMED]], "revived_count": len(revived)},
    )

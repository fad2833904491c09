"""`harness retry ID`: reset a failed task, or a completed one whose check fails now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import rescue_refs
from harness_lib.core import ownership, rights
from harness_lib.core.context import Context, Reply
from harness_lib.errors import UsageError
from harness_lib.rules import arrows, attempts, transitions
from harness_lib.state.api import Tx
from harness_lib.task import Task
from harness_lib.text import counted, some

SUMMARY = "reset a failed or completed task, and the tasks that it blocked"
EXAMPLE = "harness retry task-001"
HELP_ORDER = 330


class Reset(NamedTuple):
    """A task before and after its reset, and the tasks that were reset with it."""

    old: Task
    new: Task
    revived: Sequence[Task] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether the task was as it is now."""
        return self.old == self.new and not self.revived


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="id", help="the task; several are reset together")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Make each task pending with all its attempts, and also the tasks that failed only because of it.

    Its errors stay, for the next attempt. All are reset, or none.
    """
    with rights.change(ctx) as tx:
        names = dict.fromkeys(ownership.require_task(tx, word).id for word in args.ids)
        resets = [_reset(tx, ctx, name) for name in names]
        then = ownership.next_command(ctx, tx)
    revived = [task for each in resets for task in each.revived]
    return Reply(
        "\n".join(line for each in resets for line in _said(each)),
        task=resets[0].new,
        next=then,
        warnings=tuple(tx.warnings),
        extra={"revived": [task.id for task in revived[:10]], "revived_count": len(revived)},
    )


def _reset(tx: Tx, ctx: Context, word: str) -> Reset:
    old = ownership.require_task(tx, word)
    if not arrows.may("reset", old):
        raise ownership.worked_on(old, "a new start would lose it")
    if attempts.is_for_user(old):
        rights.require_check_of_another(ctx, old, typed.give_check(old.id))
    done = Reset(old, transitions.reset(old))
    done = done._replace(revived=_revive(tx, done.new))
    if not done.changes_nothing:
        rights.lift_halts(tx, done.new)
        rights.log(
            tx, ctx, f"reset was {old.status} after {old.attempts}/{old.max_attempts} attempts", old.id
        )
        for task in done.revived:
            rights.log(tx, ctx, f"reset with {old.id}", task.id)
    return done


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


def _said(reset: Reset) -> Iterator[str]:
    new = reset.new
    if reset.changes_nothing:
        yield f"{new.id} has nothing to reset."
        return
    tries = counted(new.max_attempts, "attempt")
    yield f"{new.id} is pending again with {tries} (it was {reset.old.status})."
    if new.handback:
        yield "The next attempt goes on with its work."
    kept = reset.old.kept
    if kept and attempts.takes_an_answer(reset.old.halt_kind):
        yield f"Its work that waited for you is kept: {rescue_refs.show_command(kept)}"
    if reset.old.status == "completed":
        yield "Its commit stays in the history: the next attempt builds on it."
    if reset.revived:
        names = some([task.id for task in reset.revived])
        yield f"pending again with it, because only it had blocked them: {names}"

"""Take over an attempt of another machine, by what it has left in the remote: its files cannot be seen here.

If its commit is on the branch, the task is completed. Otherwise the work that it had pushed goes to the next
attempt, and no attempt is counted: the machine is to blame, not the work. A commit whose check had passed is
merged without an agent.
A commit may be on its way to the branch: then the turn is taken first, after which the remote refuses it.
"""

from __future__ import annotations

from contextlib import nullcontext

from harness_lib.attempts import check, interrupted, outcome, remote, rescue_refs, rollback, snapshots, turn
from harness_lib.attempts.remote import There
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HeldError
from harness_lib.rules import transitions
from harness_lib.system.processes import owner
from harness_lib.task import Session, Task

# Seconds to wait for the turn: whoever recovers has other things to do.
WAIT_SECONDS = 10.0


def recover(ctx: Context, session: Session, task: Task) -> tuple[str, outcome.Ended | None]:
    """End the attempt at `task`, which the caller has claimed; return a line, and how it ended.

    A remote that does not answer ends nothing: then the claim is given up, for another try.
    """
    there = remote.of(ctx, task)
    try:
        return _recover(ctx, session, task, there)
    except (HeldError, EnvSetupError) as error:
        with ctx.store.transaction("tasks") as tx:
            mine = outcome.require_claim(tx, task)
            tx.replace(transitions.renew(mine, now=tx.now, lease_seconds=0))
        return f"{task.id} cannot be recovered yet: {error.message}", None


def _recover(ctx: Context, session: Session, task: Task, there: There) -> tuple[str, outcome.Ended | None]:
    # No push is under way of work that still waits for its merge: the list says so before there is one.
    is_moving = task.intent is not None and task.intent.action == "commit"

    end = ctx.clock.monotonic() + WAIT_SECONDS

    def keep_claim() -> None:
        if ctx.clock.monotonic() > end:
            raise HeldError(f"Another machine merges into {there.shown} now.", "Try again later.")
        check.renew(ctx, task)

    with turn.taken(ctx, there, keep_claim) if is_moving else nullcontext() as mine:
        if mine is not None:
            mine.begin()
        left = snapshots.newest(ctx, there, task)
        commit = remote.found(there, task)
        if commit is not None and not ctx.merging.proposes:
            ended = _complete(ctx, session, task, there, commit)
            reason = f"{_whose(ctx, task)}; its commit {commit[:12]} is on {there.shown}"
            return interrupted.log(ctx, session, task, "mark completed", reason), ended
        if commit is not None:
            # It waits to be proposed.
            left = snapshots.Left(commit, "ready")
        return _hand_back(ctx, session, task, there, left)


def _whose(ctx: Context, task: Task) -> str:
    """Return why the attempt at `task` goes on here."""
    where = task.machine or "another machine"
    if task.machine == owner.machine(ctx.env) and task.worktree is None:
        return f"the worker of {where} that merges has ended"
    return f"{where} does not answer"


def _complete(ctx: Context, session: Session, task: Task, there: There, commit: str) -> outcome.Ended:
    git = there.git
    base = git.parent(commit) or task.started_at_commit
    with ctx.store.transaction("tasks") as tx:
        current = transitions.uncommitted(outcome.require_claim(tx, task))
        current = transitions.begin_commit(
            current, now=tx.now, head=None, commit=commit, ref=task.target, base=base
        )
        tx.replace(current)
    ended = outcome.completed(ctx, session, current)
    snapshots.drop(ctx, there, task)
    return ended


def _hand_back(
    ctx: Context, session: Session, task: Task, there: There, left: snapshots.Left | None
) -> tuple[str, outcome.Ended]:
    """Give the task back with the work that is `left` of it; the third time in a row without any it fails."""
    why, rescue = _whose(ctx, task), None
    reason = f"{why}, and had pushed no work on it"
    if left is not None:
        what = "its checked work" if left.kind == "ready" else "what it had done"
        reason = f"{why}; {what} stands in the work tree"
        rescue = rescue_refs.free_ref(there.git, task)
        there.git.set_ref(rescue, left.commit)
    accepted = left is not None and left.kind == "ready"
    ended = rollback.keep_for_the_next(ctx, session, task, reason, rescue, accepted=accepted)
    return interrupted.log(ctx, session, task, "hand back", reason), ended

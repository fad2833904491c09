"""Complete a task whose kept work a person has accepted, in a work tree of its own as in a run."""

from __future__ import annotations

import os

from harness_lib.attempts import (
    accepted,
    claim,
    outcome,
    requeue,
    target_branch,
    worktree_slots,
)
from harness_lib.core import sessions, trust_policy
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.runs import ending, open_session
from harness_lib.system.git import version
from harness_lib.system.locks import family_lock
from harness_lib.system.processes import owner
from harness_lib.task import Session, Task


def complete(ctx: Context, task_id: str) -> outcome.Ended | None:
    """Complete the task on the branch that is checked out; None if no further session may be opened.

    Raises HeldError (somebody else holds the list), RefusedError (untrusted commands), ConfigError,
    EnvSetupError; the work is kept then.
    """
    own = Context(env=owner.without_agent(ctx.env), cwd=ctx.root.path, clock=ctx.clock, say=ctx.say)
    own.__dict__["owner"] = owner.ourselves("accept")
    own.busy = ctx.busy
    trust_policy.require(own, own.store.ask())
    version.require_for_runs(own.cwd)
    own.target = target_branch.current(own.git)
    sessions.refuse_other(own.store.ask(), own)
    opened = open_session.open_session(own)
    if opened.session is None:
        return None
    place = worktree_slots.directory_of(own, own.owner.worker)
    lock = family_lock.hold(place.lock)
    assert lock is not None, f"BUG: somebody holds {place.lock}"
    try:
        return _in(own, place, opened.session, task_id)
    finally:
        ending.leave(own, place, own.say)
        os.close(lock)


def _in(ctx: Context, place: worktree_slots.Place, session: Session, task_id: str) -> outcome.Ended | None:
    tip = target_branch.tip(ctx.git, ending.target_of(ctx))
    view = ctx.at(worktree_slots.checkout_clean(ctx, place.slot(1), tip)[0])
    worktree_slots.set_up(view)
    taken = claim.take(view, session, task_id)
    if taken.task is None:
        return None
    try:
        return accepted.finish(view, session, taken.task)
    except (HarnessError, OSError, KeyboardInterrupt) as error:
        _give_back(view, session, taken.task, str(error))
        raise


def _give_back(ctx: Context, session: Session, task: Task, why: str) -> None:
    current = ctx.store.ask().task(task.id)
    if current is not None and current.status == "in_progress" and current.intent is None:
        requeue.interrupted(ctx, session, current, why)

"""Leave a task alone whose attempt can be neither ended nor handed back, so that others need not wait.

Its work is kept and its work tree is not touched; it is halted until a person has looked.
"""

from __future__ import annotations

from pathlib import Path

from harness_lib import typed
from harness_lib.attempts import outcome, rescue_refs, worktree_slots
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.rules import transitions
from harness_lib.rules.halting import Halt
from harness_lib.system.git.repository import Git
from harness_lib.task import Session, Task

TRIES = 3


class Tries:
    """How often each task could not be handed back."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def spent(self, task: Task) -> bool:
        """Count one more try that failed; return whether it was the last."""
        self._counts[task.id] = self._counts.get(task.id, 0) + 1
        return self._counts[task.id] >= TRIES


def give_up(ctx: Context, session: Session, task: Task, error: HarnessError | OSError) -> Task:
    """Make `task` pending and halted because of `error`, nobody blamed, and return it.

    Raises LeaseLostError, and touches nothing, if the claim is no longer the one that `task` shows.
    """
    # First of all: the work tree of a claim that was lost may be somebody else's place by now.
    kept = _keep(ctx, outcome.still_claimed(ctx.store.ask(), task))
    reason = f"{error.message if isinstance(error, HarnessError) else error}"
    with ctx.store.transaction() as tx:
        mine = outcome.require_claim(tx, task)
        if transitions.may("drop_intent", mine):
            mine = transitions.drop_intent(mine)
        if transitions.may("begin_rollback", mine):
            mine = transitions.release(mine, now=tx.now, message=reason, rescue=None, head=None)
        retry = typed.harness("retry", task.id)
        message = f"ENV_SETUP: the attempt could not be ended: {reason} {kept} Then type: {retry}"
        ended = transitions.fail(transitions.halt(mine, Halt("ENV_SETUP", message)), now=tx.now)
        tx.replace(ended)
        tx.log("WARN", f"given up after {TRIES} tries: {message}", session=session.number, task=task.id)
    return ended


def _keep(ctx: Context, task: Task) -> str:
    """Keep what stands in the work tree of `task`, and say where."""
    if task.worktree is None:
        return ""
    place = Path(task.worktree)
    try:
        worktree = worktree_slots.at(ctx, place)
        view = ctx.at(worktree or Git.open(place))
        if task.intent is not None and task.intent.commit is not None:
            view.git.set_ref(rescue_refs.free_ref(view.git, task, "-checked"), task.intent.commit)
        return f"Its work is kept: {rescue_refs.show_command(rescue_refs.rescue_only(view, task))}"
    except (EnvSetupError, HarnessError, OSError):
        # Not even that: then the whole directory is kept.
        aside = rescue_refs.whole(ctx, place, None)
        return f"Its work tree is kept in {aside}." if aside else ""

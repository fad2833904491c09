"""Hand back the tasks of a run whose worker is gone, so that another one goes on with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness_lib.attempts import reclaim, reconcile, requeue, worktree_slots
from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.rules import leases
from harness_lib.rules.events import NoticeKind
from harness_lib.state.api import Questions

RETRY_SECONDS = 5.0


class Orphans:
    """Those of one run; `tell` shows the watcher an event and its message."""

    def __init__(self, ctx: Context, tell: Callable[[NoticeKind, str], None]) -> None:
        self._ctx, self._tell = ctx, tell
        self._next_try = 0.0
        self._reclaims = reclaim.Reclaims(ctx)

    def of_earlier_sessions(self) -> None:
        """Hand back what recovery has left to this run: a worker takes it up in a work tree of its own."""
        ctx, questions = self._ctx, self._ctx.store.ask()
        session = sessions.mine(questions, ctx)
        for task in questions.in_progress() if session else ():
            if task.claimed_by == ctx.owner.worker and task.worktree:
                worktree = worktree_slots.at(ctx, Path(task.worktree))
                assert session is not None
                assert worktree is not None, "BUG: recovery has left a task whose work tree is gone."
                requeue.interrupted(ctx.at(worktree), session, task, "an earlier session ended")

    def of(self, worker: str) -> None:
        """Hand back what `worker`, whose process is dead, had in progress."""
        questions = self._ctx.store.ask()
        session = sessions.mine(questions, self._ctx)
        held = questions.held_by(worker)
        if session is None or held is None or held.worktree is None:
            return
        tried = self._reclaims.reclaim(session, held)
        if tried.how == "handed back":
            self._tell("recovered", tried.message)
        elif tried.how in ("later", "given up"):
            self._tell("warning", tried.message)

    def left(self, questions: Questions) -> None:
        """Try again what could not be handed back when its worker died; every worker is idle now."""
        me, now = self._ctx.owner.worker, self._ctx.clock.monotonic()
        if now < self._next_try:
            return
        self._next_try = now + RETRY_SECONDS
        for task in questions.in_progress():
            if task.claimed_by and leases.works_for(task.claimed_by, me):
                self.of(task.claimed_by)

    def of_others(self, questions: Questions) -> None:
        """Recover what others (concurrent mode) have left in progress and let the lease of run out."""
        session = sessions.mine(questions, self._ctx)
        if session and any(not leases.works_for(t.claimed_by, session.worker) for t in questions.expired()):
            reconcile.reclaim_interrupted(self._ctx, session, fresh=False)

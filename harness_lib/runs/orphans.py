"""Hand back the tasks of a run whose worker is gone, so that another one goes on with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness_lib.attempts import giving_up, reconcile, requeue
from harness_lib.core import sessions
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules import leases
from harness_lib.rules.events import NoticeKind
from harness_lib.system.git.repository import Git
from harness_lib.task import State

RETRY_SECONDS = 5.0


class Orphans:
    """Those of one run; `tell` shows the watcher an event and its message."""

    def __init__(self, ctx: Context, tell: Callable[[NoticeKind, str], None]) -> None:
        self._ctx, self._tell = ctx, tell
        self._next_try = 0.0
        self._tries = giving_up.Tries()

    def of_earlier_sessions(self) -> None:
        """Hand back what recovery has left to this run: a worker takes it up in a work tree of its own."""
        ctx, state = self._ctx, self._ctx.store.read().state
        session = sessions.mine(state, ctx)
        for task in state.tasks if session else ():
            if task.status == "in_progress" and task.claimed_by == ctx.owner.worker and task.worktree:
                there = ctx.at(Git.open(Path(task.worktree)))
                assert session is not None
                requeue.interrupted(there, session, task, "an earlier session ended")

    def of(self, worker: str) -> None:
        """Hand back what `worker`, whose process is dead, had in progress."""
        state = self._ctx.store.read().state
        session = sessions.mine(state, self._ctx)
        held = next((t for t in state.tasks if t.status == "in_progress" and t.claimed_by == worker), None)
        if session is None or held is None or held.worktree is None:
            return
        try:
            self._tell("recovered", reconcile.bereaved(self._ctx, session, held))
        except (HarnessError, OSError) as error:
            self._tell("warning", f"{held.id} could not be handed back yet: {error}")
            now = self._ctx.store.read().state.find(held.id)
            if now is not None and self._tries.spent(now):
                giving_up.give_up(self._ctx, session, now, error)

    def left(self, state: State) -> None:
        """Try again what could not be handed back when its worker died; every worker is idle now."""
        me, now = self._ctx.owner.worker, self._ctx.clock.monotonic()
        if now < self._next_try:
            return
        self._next_try = now + RETRY_SECONDS
        for task in state.tasks:
            if task.status == "in_progress" and task.claimed_by and leases.works_for(task.claimed_by, me):
                self.of(task.claimed_by)

    def of_others(self, state: State) -> None:
        """Recover what others (concurrent mode) have left in progress and let the lease of run out."""
        session, now = sessions.mine(state, self._ctx), self._ctx.clock.now()
        expired = (t for t in state.tasks if t.status == "in_progress" and leases.expired(t, now))
        if session and any(not leases.works_for(t.claimed_by, session.worker) for t in expired):
            reconcile.interrupted(self._ctx, session, fresh=False)

"""One unattended run (`harness run`), from its beginning to its report."""

from __future__ import annotations

import os
from collections.abc import Sequence

from harness_lib.attempts import open_session, publish, worker_worktrees
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.rules import recovery
from harness_lib.rules.events import MERGER, Event, Notice
from harness_lib.rules.run_state import RunState
from harness_lib.runs import confinement, ending, run_snapshot, waiting
from harness_lib.runs.options import Options, prepare
from harness_lib.runs.scheduler import ALL_DONE, Scheduler, Watch
from harness_lib.system import flock
from harness_lib.system.processes import owner


def run(ctx: Context, options: Options, watch: Watch) -> Reply:
    """Run until nothing is left to do, a limit is reached, or the user has stopped it.

    Exit 0: every task is completed; 9: stopped, as `stop` says.
    Raises HeldError (another session is open), RefusedError (untrusted commands), UsageError, and ConfigError
    and EnvSetupError for what the user must see to first.
    """
    began, state = ctx, RunState(began=ctx.clock.now().timestamp(), limits=options.budget)

    def tell(line: str) -> None:
        watch(Event(None, began.clock.now().timestamp(), Notice("warning", line)), state)

    ctx, options = waiting.until_it_works(began, tell, lambda: prepare(began, options))
    ctx.__dict__["owner"] = owner.ourselves("run")
    merged, opened = waiting.until_it_works(ctx, tell, lambda: _open(ctx))
    if ctx.store.shared is not None:
        # The run must not wait for the turn itself: nothing else would go on meanwhile.
        ctx.merging = ctx.merging._replace(by=recovery.worker_name(ctx.owner.worker, MERGER))
    scheduler = Scheduler(ctx, options, watch)
    if options.sandbox.mode != "off":
        for line in confinement.said(ctx.env):
            scheduler.tell("sandbox", line)
    for line in (*merged, *opened.recovered):
        scheduler.tell("recovered", line)
    if opened.session is None and not (opened.stop in ALL_DONE and scheduler.must_check()):
        ending.tidy(ctx, scheduler.warn)
        return ending.without_work(ctx, opened.stop, opened.recovered)
    return _work(ctx, scheduler, has_session=opened.session is not None)


def _open(ctx: Context) -> tuple[Sequence[str], open_session.Opened]:
    """Open the session of the run; return also what others have merged, and which halted tasks go on.

    It may be repeated after an error.
    """
    merged = publish.begin(ctx)
    worker_worktrees.end_survivors(ctx)
    lifted = confinement.lift_halts(ctx)
    return [*merged, *lifted], open_session.open_session(ctx)


def _work(ctx: Context, scheduler: Scheduler, *, has_session: bool) -> Reply:
    """Let the run work in a place of its own, which is locked as long as it or a worker lives."""
    place = worker_worktrees.directory_of(ctx, ctx.owner.worker)
    lock = flock.hold(place.lock)
    assert lock is not None, f"BUG: somebody holds {place.lock}"
    try:
        scheduler.work(place, lock, has_session=has_session)
    finally:
        ending.leave(ctx, place, scheduler.warn, scheduler.checked, recorded=scheduler.recorded)
        scheduler.close_record()
        os.close(lock)
        run_snapshot.remove(ctx)
        run_snapshot.forget(ctx)
    return scheduler.reply()

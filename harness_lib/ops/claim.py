"""`harness claim`: take the next task, atomically (seed "Task Execution Cycle" step 1, design section 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness_lib.errors import HeldError, UsageError
from harness_lib.ops import (
    brief,
    dependencies,
    halting,
    holding,
    marker,
    preparing,
    red_first,
    sessions,
    start,
    stopped,
)
from harness_lib.ops.context import Context
from harness_lib.ops.preparing import Ground
from harness_lib.ops.reply import Reply
from harness_lib.rules import leases, selection, stopping, transitions
from harness_lib.state.store import Tx
from harness_lib.task import Gate, Session, State, Task

POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Taken:
    """What one try gave: a task, or the reason to stop, or neither if another worker was faster."""

    task: Task | None = None
    stop: str | None = None
    resumed: bool = False


def run(ctx: Context, task_id: str | None = None, *, dry_run: bool = False, wait: float = 0.0) -> Reply:
    """Take `task_id`, or the next task in the seed's order, and print its brief.

    `wait` is how many seconds to wait for others to finish what this one depends on.
    Raises UsageError (no such task, or it may not run), RefusedError, HeldError, ConfigError, EnvSetupError.
    """
    if dry_run:
        return _dry_run(ctx, task_id)
    deadline = ctx.clock.monotonic() + wait
    while True:
        reply = _claim(ctx, task_id)
        if reply.stop != "waiting" or ctx.clock.monotonic() >= deadline:
            return reply
        ctx.say("waiting for other workers …")
        ctx.clock.sleep(min(POLL_SECONDS, max(0.0, deadline - ctx.clock.monotonic())))


def _claim(ctx: Context, task_id: str | None) -> Reply:
    session, opened = _session(ctx)
    if session is None:
        return stopped.reply("claim", ctx.store.read().state, opened.stop, opened.recovered)
    while True:
        taken = _try(ctx, session, task_id)
        if taken.stop:
            return stopped.reply("claim", ctx.store.read().state, taken.stop, opened.recovered)
        if taken.task:
            return _reply(ctx, session, taken.task, opened, resumed=taken.resumed)


def _session(ctx: Context) -> tuple[Session | None, start.Opened]:
    """Return this worker's open session, opening one as `harness start` does if there is none."""
    state = ctx.store.read_to_change().state
    sessions.refuse_other(state, ctx)
    session = sessions.mine(state, ctx)
    if session and start.is_open(session, state, ctx):
        return session, start.Opened(session)
    opened = start.open_session(ctx)
    return opened.session, opened


def _try(ctx: Context, session: Session, task_id: str | None) -> Taken:
    """Choose, prepare outside the lock, and claim under it what is still the right choice then."""
    state = ctx.store.read().state
    held = holding.held_by_me(state, ctx)
    if held:
        return Taken(_again(ctx, held, task_id), resumed=True)
    wanted = _choose(ctx, state, task_id)
    if wanted is None:
        return _settle_nothing(ctx, session)
    with halting.when_stuck(ctx, session, wanted.id):
        ground = preparing.survey(ctx)
        preparing.require_dependencies(ctx, state, wanted)
        gate = preparing.gate_for(ctx, wanted, ground)
    with ctx.store.transaction() as tx:
        dependencies.record_blocked(tx, session.number)
        _require_own_work_tree(tx.state, ctx)
        current = sessions.mine(tx.state, ctx)
        spent = stopping.session_spent(tx.state, current) if current else None
        if current is None or spent:
            return Taken(stop=spent) if spent else Taken()
        task = _choose(ctx, tx.state, task_id)
        if task is None:
            return _nothing(tx, ctx, current)
        if task is not wanted and task != wanted:
            cheap = _cheap_gate(task, ground)
            if cheap is None:
                return Taken()
            gate = cheap
        claimed = transitions.claim(
            task,
            worker=ctx.owner.worker,
            now=tx.now,
            base=ground.base,
            gate=gate,
            worktree=str(ctx.git.top),
            lease_seconds=ctx.lease_seconds if tx.state.concurrent else None,
        )
        tx.replace(claimed)
        sessions.update(tx, replace(current, halt=None))
        tx.log("Starting", f"{task.title} (base={ground.base[:12]})", session=current.number, task=task.id)
        tx.on_commit(lambda: marker.raise_it(ctx.root))
    with halting.when_stuck(ctx, session, claimed.id):
        return Taken(red_first.prove(ctx, claimed))


def _again(ctx: Context, held: Task, task_id: str | None) -> Task:
    """Return the task that this worker has in progress already; asking for another one is a mistake."""
    if task_id not in (None, held.id):
        raise UsageError(
            f"You hold {held.id}; one task at a time.",
            f"Finish it (harness finish {held.id}) or hand it back (harness release {held.id}).",
        )
    if not ctx.store.read().state.concurrent:
        return held
    with ctx.store.transaction() as tx:
        now = tx.state.find(held.id)
        if now is None or not leases.is_same(now, held):
            return held
        renewed = transitions.renew(now, now=tx.now, lease_seconds=ctx.lease_seconds)
        tx.replace(renewed)
        return renewed


def _choose(ctx: Context, state: State, task_id: str | None) -> Task | None:
    """Return the named task if it may run, or the next one; None if nothing may."""
    now = ctx.clock.now()
    if task_id is None:
        return selection.pick(state, now)
    task = holding.require_task(state, task_id)
    verdict = selection.why(state, task_id, now)
    if not verdict.eligible:
        raise UsageError(
            f"Task {task_id} cannot be taken: {'; '.join(verdict.reasons)}.", "See: harness status"
        )
    return task


def _settle_nothing(ctx: Context, session: Session) -> Taken:
    with ctx.store.transaction() as tx:
        dependencies.record_blocked(tx, session.number)
        return _nothing(tx, ctx, sessions.mine(tx.state, ctx) or session)


def _nothing(tx: Tx, ctx: Context, session: Session) -> Taken:
    """Nothing may be taken: say why, and end the session unless others may still free something."""
    stop = stopping.no_work(tx.state, tx.now)
    if stop in ("done", "blocked"):
        sessions.close(tx, session)
        marker.lower_when_finished(tx, ctx.root)
    return Taken(stop=stop)


def _cheap_gate(task: Task, ground: Ground) -> Gate | None:
    """Return the gate of a task chosen under the lock, if it needs no git: no git runs under the lock."""
    if task.validation.protect or task.depends_on or task.validation.red_first:
        return None
    return preparing.plain_gate(task, ground)


def _require_own_work_tree(state: State, ctx: Context) -> None:
    """Raise HeldError if another live worker has a task in progress in this work tree (concurrent mode)."""
    if not state.concurrent:
        return
    here, now = str(ctx.git.top), ctx.clock.now()
    for task in state.tasks:
        if task.status != "in_progress" or task.worktree != here or leases.is_mine(task, ctx.owner.worker):
            continue
        if sessions.worker_is_live(task.claimed_by, state, ctx) or not leases.expired(task, now):
            raise HeldError(
                f"{task.claimed_by} works on {task.id} in {here}; two workers never share a work tree.",
                "Make one of your own (git worktree add ../worker-2) and claim there.",
            )


def _reply(ctx: Context, session: Session, task: Task, opened: start.Opened, *, resumed: bool) -> Reply:
    told = brief.of(task, ctx.git)
    lines = [*opened.recovered, ("you hold this one already:\n" if resumed else "") + told]
    return Reply(
        "claim",
        "\n".join(lines),
        session=session.number,
        task=task,
        next=f"harness finish {task.id}",
        warnings=opened.warnings,
        extra={"resumed": resumed, "recovered": list(opened.recovered), "brief": told},
    )


def _dry_run(ctx: Context, task_id: str | None) -> Reply:
    """Say which task would be taken, and why; nothing is written."""
    state = ctx.store.read().state
    held = holding.held_by_me(state, ctx)
    task = held or _choose(ctx, state, task_id)
    if task is None:
        return stopped.reply("claim", state, stopping.no_work(state, ctx.clock.now()))
    reasons = selection.why(state, task.id, ctx.clock.now()).reasons
    told = "you hold it already" if held else "; ".join(reasons) or "it is the first in order that may run"
    return Reply("claim", f"would take {task.id}: {told}\n{brief.of(task)}", task=task, next="harness claim")

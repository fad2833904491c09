"""Claim one task: choose and prepare it outside the lock, claim it under the lock if it still comes next.

Source: docs/protocol.md, "Task Execution Cycle" step 1; docs/design.md, "At the claim".
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import baseline, check, check_inputs, outcome, rescue_refs, turn
from harness_lib.core import held_out, lifecycle, ownership, quoting, sessions, trust
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HarnessError, HeldError, LeaseLostError, UsageError
from harness_lib.rules import recovery, transitions
from harness_lib.rules.attempts import Halt
from harness_lib.state.api import Questions, Tx
from harness_lib.system.git import clones
from harness_lib.task import Gate, Session, StopReason, Task
from harness_lib.text import Strings, safe_name, some

PASSES = "validation.red_first: the check passes before any work, so it proves nothing"


class Here(NamedTuple):
    """The task that this machine takes next, and those before it that are left alone here.

    Of `elsewhere` only another machine has the held-out check. `untrusted` are the ids of tasks that wait
    until the user trusts their commands here.
    """

    task: Task | None
    elsewhere: tuple[Task, ...] = ()
    untrusted: Strings = ()

    @property
    def leaves_some(self) -> bool:
        """Whether there are tasks that could be taken, but not on this machine as it is."""
        return not self.task and bool(self.elsewhere or self.untrusted)

    def words(self, ctx: Context) -> str:
        """Return a sentence about the tasks that are left alone, as many as fit, and what to do; or ""."""
        told = trust.told(ctx, self.untrusted)
        if not self.elsewhere:
            return told
        which = some([task.id for task in self.elsewhere])
        words = f"{which}: {held_out.ELSEWHERE}. {held_out.cure(self.elsewhere[0])}"
        return f"{words}. {told}" if told else words


class Taken(NamedTuple):
    """The result of one try: a task, or a reason to stop, or neither if another worker was faster.

    `told`: why this machine takes none of those that could be taken; `untrusted` are those of them that wait
    for the user's trust, if no work of others may free more. `must_check`: only the final check of a chat's
    session is left.
    """

    task: Task | None = None
    stop: StopReason | None = None
    resumed: bool = False
    told: str = ""
    untrusted: Strings = ()
    must_check: bool = False


def take(ctx: Context, task_id: str | None = None, settings: clones.Settings | None = None) -> Taken:
    """Claim `task_id`, or the next task in the protocol's order; return the one that this worker holds.

    `settings` as in `baseline.survey`.
    Raises UsageError (no such task, or it may not run), RefusedError, HeldError, ConfigError, EnvSetupError,
    UntrustedTaskError (the named task waits for the user's trust).
    """
    questions = ctx.ask()
    if ctx.target is None and lifecycle.must_check(questions, ctx):
        return Taken(must_check=True)
    ownership.refuse_late(ctx, questions)
    held = ctx.held(questions)
    if held and ownership.is_left_elsewhere(ctx, held, questions):
        return Taken(stop="waiting")
    if held:
        _require_same(questions, held, task_id)
        ctx.store.enable_hooks()
        is_leased = questions.concurrent
        del questions
        return Taken(_renewed(ctx, held) if is_leased else held, resumed=True)
    found = choose(ctx, questions, task_id)
    chosen = found.task
    if not chosen:
        with ctx.transaction("tasks") as tx:
            lifecycle.record_blocked(tx, ctx.session.number)
            return _nothing(tx, ctx, ctx.own_session(tx) or ctx.session, found)
    with lifecycle.halting_on_error(ctx, chosen.id):
        if ctx.shared and ctx.target is None:
            turn.begin_chat(ctx)
        surveyed = baseline.survey(ctx, settings)
        baseline.require_dependencies(ctx, questions, chosen)
        held_out.load(ctx, chosen)
        gate = baseline.gate_for(ctx, chosen, surveyed)
    baseline.note(ctx)
    # A database then uses its connection for the change.
    del questions
    taken = _claim(ctx, task_id, found, surveyed, gate)
    if not taken.task:
        return taken
    if ctx.shared and ctx.target is None:
        claimed = taken.task
        rescue = f"{rescue_refs.RESCUE_REFS}{safe_name(claimed.id)}/late-{claimed.fence}"
        ownership.note_claim(ctx, claimed, rescue)
    with lifecycle.halting_on_error(ctx, taken.task.id):
        return taken._replace(task=_require_red(ctx, taken.task))


def _claim(ctx: Context, task_id: str | None, chosen: Here, surveyed: baseline.Baseline, gate: Gate) -> Taken:
    """Claim `chosen`, which `gate` belongs to, or a task that now comes first, if its gate needs no git."""
    with ctx.transaction("tasks") as tx:
        current = ctx.own_session(tx)
        lifecycle.record_blocked(tx, current.number if current else tx.session_count)
        _require_own_work_tree(tx, ctx)
        spent = tx.session_spent(current) if current else None
        if not current or spent:
            return Taken(stop=spent)
        found = choose(ctx, tx, task_id, chosen)
        task = found.task
        if not task:
            # What is left alone is looked at without locks.
            return Taken() if found.leaves_some else _nothing(tx, ctx, current, found)
        if task != chosen.task:
            cheap = None if ctx.protect else _cheap_gate(task, surveyed)
            if not cheap:
                return Taken()
            gate = cheap
        _record(tx, ctx, current, task, surveyed, gate)
        return Taken(tx.task(task.id))


def _record(
    tx: Tx, ctx: Context, session: Session, task: Task, surveyed: baseline.Baseline, gate: Gate
) -> None:
    claimed = transitions.claim(
        task,
        worker=ctx.owner.worker,
        now=tx.now,
        base=surveyed.base,
        gate=gate,
        worktree=str(ctx.git.top),
        lease_seconds=ctx.lease_seconds if tx.concurrent else None,
    )
    # A list that was moved back to a file may name another one.
    claimed = claimed._replace(machine=ctx.machine if ctx.shared else None)
    # Before the list has the claim: without its own copy it would be compared with an earlier claim's.
    baseline.keep(ctx, claimed)
    tx.replace(claimed)
    tx.replace_session(lifecycle.unhalted(session))
    where = f", machine={claimed.machine}" if claimed.machine else ""
    words = f"{task.title} (base={surveyed.base[:12]}{where})"
    tx.log("Starting", words, session.number, task.id)
    if surveyed.unprotected:
        names = quoting.named(surveyed.unprotected)
        tx.log("WARN", f"no copy is kept of {names}", session.number, task.id)
    tx.on_commit(ctx.store.enable_hooks)


def _require_same(questions: Questions, held: Task, task_id: str | None) -> None:
    """Raise UsageError if another task than the one that this worker has in progress was asked for."""
    if task_id is not None and ownership.require_task(questions, task_id).id != held.id:
        finish, release = typed.harness("finish", held.id), typed.harness("release", held.id)
        raise UsageError(
            f"You hold {held.id}; one task at a time.",
            f"Finish it ({finish}) or hand it back ({release}).",
        )


def _renewed(ctx: Context, held: Task) -> Task:
    """Return the task that this worker has in progress, with its lease renewed."""
    with ctx.transaction("tasks") as tx:
        current = tx.task(held.id)
        if not current or not recovery.is_same(current, held):
            return held
        renewed = transitions.renew(current, now=tx.now, lease_seconds=ctx.lease_seconds)
        tx.replace(renewed)
        return renewed


def choose(ctx: Context, questions: Questions, task_id: str | None, known: Here | None = None) -> Here:
    """Return the named task if it may run here, or the next one; None if no task may run.

    `known` as in `next_task`.
    """
    if task_id is None:
        return next_task(ctx, questions, known)
    task = ownership.require_task(questions, task_id)
    verdict = questions.why(task.id)
    if not verdict.eligible:
        raise UsageError(
            f"Task {task.id} cannot be taken: {'; '.join(verdict.reasons)}.", "See: harness status"
        )
    if held_out.is_elsewhere(ctx, task):
        raise UsageError(f"Task {task.id} cannot be taken here: {held_out.ELSEWHERE}.", held_out.cure(task))
    trust.require_own(ctx, task)
    return Here(task)


def next_task(ctx: Context, questions: Questions, known: Here | None = None) -> Here:
    """Return the next task apart from those that are left alone on this machine.

    `known` has such tasks that were found already; then the list as a whole is not looked at again.
    """
    elsewhere = [*(known.elsewhere if known else ())]
    untrusted = dict.fromkeys(known.untrusted if known else ())
    while True:
        task = questions.next_ready([*(each.id for each in elsewhere), *untrusted])
        if not task:
            # Nor does the check of these run here, which others have marked as completed.
            unproven = (each for each in questions.unproven() if not trust.knows(ctx, each))
            untrusted.update(dict.fromkeys(each.id for each in unproven))
            return Here(None, tuple(elsewhere), tuple(untrusted))
        if not trust.knows(ctx, task):
            if not known and not untrusted:
                # One by one they would be many questions.
                untrusted.update(dict.fromkeys(trust.waiting(ctx, questions)))
            untrusted[task.id] = None
        elif held_out.is_elsewhere(ctx, task):
            elsewhere.append(task)
        else:
            return Here(task, tuple(elsewhere), tuple(untrusted))


def _nothing(tx: Tx, ctx: Context, session: Session, found: Here) -> Taken:
    """Return why no task may be claimed, and end the session unless other workers may still free one."""
    stop = tx.no_work()
    if stop is None and found.leaves_some and not trust.known(ctx, tx.unproven()):
        words = found.words(ctx)
        if ctx.target is None:
            lifecycle.halt(tx, session, Halt("REFUSED" if found.untrusted else "CONFIG", words))
        return Taken(stop="waiting", told=words, untrusted=() if tx.in_progress() else found.untrusted)
    if stop in lifecycle.ALL_TAKEN:
        stop = lifecycle.end(tx, ctx, session, stop)
        lifecycle.disable_hooks_when_finished(tx, ctx)
    elif tx.awaits_user():
        lifecycle.close(tx, session)
        lifecycle.disable_hooks_when_finished(tx, ctx)
    return Taken(stop=stop)


def _cheap_gate(task: Task, surveyed: baseline.Baseline) -> Gate | None:
    """Return the gate of a task chosen under the lock, if it needs no git, which may not run there."""
    asks = task.validation
    if asks.protect or task.depends_on or asks.red_first or check_inputs.depends_on_files(task):
        return None
    return baseline.plain_gate(task, surveyed)


def _require_own_work_tree(questions: Questions, ctx: Context) -> None:
    """Raise HeldError if another live worker has a task in progress in this work tree (concurrent mode)."""
    if not questions.concurrent:
        return
    top, now = str(ctx.git.top), questions.now
    for task in questions.in_progress():
        if recovery.placed(task).worktree != top or ctx.holds(task):
            continue
        if sessions.worker_is_live(task.claimed_by, questions, ctx) or not recovery.expired(task, now):
            places = (ctx.git.top.parent / f"worker-{number}" for number in count(2))
            add = typed.git("worktree", "add", next(place for place in places if not place.exists()))
            raise HeldError(
                f"{task.claimed_by} works on {task.id} in {top}; two workers never share a work tree.",
                f"Make one of your own ({add}) and claim there.",
            )


def _require_red(ctx: Context, task: Task) -> Task:
    """Return the claimed `task`, ready to be worked on; its check has run if it asks for that.

    Raises ConfigError if the check passes, RefusedError (untrusted), EnvSetupError; the task is released
    then. Raises LeaseLostError if another worker has it.
    """
    if not task.validation.red_first:
        return task
    questions = ctx.ask()
    try:
        trust.require(ctx, questions)
        check.require_check(ctx, questions, task)
        checked = check.run(ctx, task, suffix="-red-first")
    except LeaseLostError:
        raise
    except HarnessError:
        _give_back(ctx, task, None)
        raise
    if checked.passed:
        _give_back(ctx, task, Halt("CONFIG", f"CONFIG: {PASSES}"))
        raise ConfigError(
            f"Task {task.id}: {PASSES}.",
            f"It needs a check that fails now: {ownership.give_check(ctx, task)}",
        )
    return _without_its_traces(ctx, task)


def _without_its_traces(ctx: Context, task: Task) -> Task:
    """Return `task` with files that the check left behind in its baseline: they are not its work."""
    base = task.started_at_commit
    assert base is not None, "BUG: a claim of harness without a base."
    assert task.gate is not None, "BUG: a claim of harness without a gate."
    warnings = outcome.undo_check(ctx, task, base)
    before = baseline.keep_untracked(ctx, base, ctx.changes().untracked)[0]
    with ctx.transaction() as tx:
        tx.warnings += warnings
        ready = outcome.require_claim(tx, task)._replace(gate=task.gate._replace(before=before))
        tx.replace(ready)
    if before != task.gate.before:
        rescue_refs.drop_before(ctx.git, task)
    return ready


def _give_back(ctx: Context, task: Task, halt: Halt | None) -> None:
    # First of all: after a kill the attempt is recovered, and a task that is released must leave nothing
    # changed.
    base = task.started_at_commit
    warnings = outcome.undo_check(ctx, task, base) if base else []
    with ctx.transaction() as tx:
        tx.warnings += warnings
        mine = outcome.require_claim(tx, task)
        begun = transitions.release(mine, now=tx.now, message=halt and halt.words)
        tx.replace(transitions.halt(transitions.fail(begun, now=tx.now), halt))
        tx.on_commit(partial(ownership.forget_claim, ctx, task))
    rescue_refs.drop_before(ctx.git, task)

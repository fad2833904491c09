"""Run a check before the work starts, and refuse one that passes (`validation.red_first`).

One that passes now would prove nothing later.
"""

from __future__ import annotations

from harness_lib.attempts import baseline, check, commit, leased_check, outcome, rescue_refs
from harness_lib.core import ownership, trust_policy
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HarnessError, LeaseLostError
from harness_lib.rules import transitions
from harness_lib.rules.halting import Halt
from harness_lib.system.git import status
from harness_lib.task import Task

PASSES = "validation.red_first: the check passes before any work, so it proves nothing"


def prove(ctx: Context, task: Task) -> Task:
    """Return the claimed `task`, ready to be worked on; its check has run if it asks for that.

    Raises ConfigError if the check passes, RefusedError (untrusted), EnvSetupError; then it is given back.
    LeaseLostError: it is somebody else's already.
    """
    if not task.validation.red_first:
        return task
    questions = ctx.store.ask()
    try:
        trust_policy.require(ctx, questions)
        check.require_check(task, questions.position(task.id), ownership.give_check(ctx, task))
        checked = leased_check.run(ctx, task, suffix="-red-first")
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
    """Return `task` with what the check left behind counted as there before: it is not the attempt's work."""
    base = task.started_at_commit
    assert base is not None, "BUG: a claim of ours without a base."
    assert task.gate is not None, "BUG: a claim of ours without a gate."
    warnings = _undo_check(ctx, task, base)
    before = baseline.keep_untracked(ctx, base, status.changes(ctx.git, ctx.keep_out).untracked)[0]
    with ctx.store.transaction() as tx:
        tx.warnings += warnings
        ready = outcome.require_claim(tx, task)._replace(gate=task.gate._replace(before=before))
        tx.replace(ready)
    if before != task.gate.before:
        rescue_refs.drop_before(ctx.git, task)
    return ready


def _undo_check(ctx: Context, task: Task, base: str) -> list[str]:
    # What the check has staged counts, too.
    return commit.undo_check(ctx, task, base, status.changes(ctx.git, ctx.keep_out).tracked)


def _give_back(ctx: Context, task: Task, halt: Halt | None) -> None:
    # First of all: killed after this, the attempt is recovered; a task given back must leave nothing changed.
    base = task.started_at_commit
    warnings = _undo_check(ctx, task, base) if base else []
    with ctx.store.transaction() as tx:
        tx.warnings += warnings
        mine = outcome.require_claim(tx, task)
        begun = transitions.release(mine, now=tx.now, message=halt and halt.words, rescue=None, head=None)
        tx.replace(transitions.halt(transitions.fail(begun, now=tx.now), halt))
    rescue_refs.drop_before(ctx.git, task)

"""Decide whether another agent continues an attempt, and wait before it starts.

Only failed work counts as an attempt: a usage limit is waited out, trouble of the provider's is
tried again after growing pauses, and a crashed agent is followed by a fresh one in the same work tree.
"""

from __future__ import annotations

from datetime import timedelta

from harness_lib.attempts import check, evaluate, outcome, worker_worktrees
from harness_lib.core.context import Context
from harness_lib.rules import run_state
from harness_lib.rules.events import Step, Stepped
from harness_lib.runs import confinement
from harness_lib.runs.agent_process import AgentExit
from harness_lib.runs.worker_port import HeldBackError, StuckError, WorkerPort, halting_task
from harness_lib.system.git import checkout, locks, trees
from harness_lib.task import Task

CRASHES = 2
# An agent that ends at once without doing anything cannot start; another try is useless.
AT_ONCE_SECONDS = 10.0
PAUSES = (5.0, 15.0, 45.0, 120.0, 300.0, 600.0, 600.0, 600.0)
UNKNOWN_LIMIT_SECONDS = 900.0
# Seconds by which a provider's clock may differ from ours.
AFTER_RESET_SECONDS = 5.0
SLICE_SECONDS = 1.0
# A shell's exit code is 128 plus the number of the signal that killed its command.
BY_SIGNAL = 128


class Tries:
    """The agents of one attempt so far: how many, what they have spent, and excused failures."""

    def __init__(self) -> None:
        self.crashes = 0
        self.pauses = 0
        self.agents = 0
        self.spent = run_state.Spent()


def goes_on(ctx: Context, task: Task, worker: WorkerPort, agent_exit: AgentExit, tries: Tries) -> bool:
    """Return whether another agent continues this attempt, after waiting for what blocks it.

    Raises StuckError (the user must act), HeldBackError (the run starts no further agent).
    """
    if not worker_worktrees.is_there(ctx.git):
        return False
    if agent_exit.how == "limit":
        _pause(
            ctx, task, worker, "limit", _until_reset(ctx, agent_exit) or UNKNOWN_LIMIT_SECONDS, agent_exit.why
        )
        return True
    if agent_exit.how == "transient":
        if tries.pauses == len(PAUSES):
            reason = f"the agent cannot reach its provider: {agent_exit.why}"
            raise StuckError("ENV_SETUP", reason, "Try again later: harness run", everywhere=True)
        tries.pauses += 1
        _pause(
            ctx,
            task,
            worker,
            "pauses",
            max(PAUSES[tries.pauses - 1], _until_reset(ctx, agent_exit)),
            agent_exit.why,
        )
        return True
    if agent_exit.how != "crashed" or _has_finished(ctx, task, worker, agent_exit):
        return False
    tries.crashes += 1
    if tries.crashes <= CRASHES:
        _pause(ctx, task, worker, "pauses", float(tries.crashes), agent_exit.why)
        return True
    if agent_exit.seconds < AT_ONCE_SECONDS and not _has_lived(ctx, task, tries):
        hint = f"See its output: {agent_exit.log}. Then: harness run{confinement.way_out(ctx.env)}"
        raise StuckError("ENV_SETUP", f"the agent cannot start: {agent_exit.why}", hint, unstarted=True)
    return False


def _has_finished(ctx: Context, task: Task, worker: WorkerPort, agent_exit: AgentExit) -> bool:
    """Return whether the check passes after an agent whose exit code is not conclusive."""
    if worker.adapter.exit_tells or not 0 < (agent_exit.code or 0) < BY_SIGNAL or not _has_changed(ctx, task):
        return False
    worker.tell(Stepped("checks"))
    with halting_task():
        questions = ctx.store.ask()
        evaluation = evaluate.evaluate(ctx, questions, outcome.require_claim(ctx.store.ask_now(), task))
    if evaluation.checked.passed:
        return True
    if evaluation.tree:
        # The next agent goes on with what this one has left, not with what the check has made of it.
        with locks.hold(ctx.git):
            checkout.apply(ctx.git, trees.changed(ctx.git, ctx.capture(), evaluation.tree))
    return False


def _until_reset(ctx: Context, agent_exit: AgentExit) -> float:
    """Return the seconds until the provider's limit ends, as far as it has told; else 0."""
    resets = agent_exit.report.trouble.resets_at if agent_exit.report.trouble else None
    if resets is None:
        return 0.0
    return max(0.0, (resets - ctx.clock.now()).total_seconds()) + AFTER_RESET_SECONDS


def _has_lived(ctx: Context, task: Task, tries: Tries) -> bool:
    """Return whether an agent of this attempt has used tokens or money, or changed a file."""
    return bool(tries.spent.tokens or tries.spent.cost) or _has_changed(ctx, task)


def _has_changed(ctx: Context, task: Task) -> bool:
    """Return whether the attempt has changed or committed anything in the work tree."""
    git, head = ctx.git, ctx.git.head()
    if head is None or head != task.started_at_commit:
        return True
    return ctx.capture() != git.tree_of(head)


def _pause(ctx: Context, task: Task, worker: WorkerPort, step: Step, seconds: float, why: str) -> None:
    """Wait, renewing the claim; the run shows until when.

    Raises HeldBackError as soon as the run starts no further agent.
    """
    until = ctx.clock.now() + timedelta(seconds=max(0.0, seconds))
    # The monotonic clock stops while a laptop sleeps; the wall clock may be set back.
    worker.tell(Stepped(step, until.timestamp(), why))
    end = ctx.clock.monotonic() + max(0.0, seconds)
    renewals = check.Renewals(ctx, task)
    while True:
        if ending := worker.held_back():
            raise HeldBackError(f"{ending} while its agent waited: {why}")
        left = end - ctx.clock.monotonic()
        if left <= 0 or ctx.clock.now() >= until:
            return
        ctx.clock.sleep(min(SLICE_SECONDS, left))
        renewals.when_due()

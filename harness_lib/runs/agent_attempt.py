"""Make one attempt at a claimed task without the user: agents work, then the check decides."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from harness_lib import typed
from harness_lib.agents.adapter import Adapter, Report
from harness_lib.attempts import (
    brought,
    check,
    complete,
    dialogue,
    evaluate,
    inspection,
    outcome,
    recheck,
    requeue,
    rollback,
    worker_worktrees,
)
from harness_lib.checks import Checked
from harness_lib.core.context import Context
from harness_lib.errors import (
    CheckEditedError,
    ConfigError,
    EnvSetupError,
    HeldError,
    LeaseLostError,
    StateUnreadableError,
)
from harness_lib.rules import attempts, run_state
from harness_lib.rules.events import Away, News, Notice, Said, Step, Stepped
from harness_lib.runs import agent_process, confinement, options, waiting
from harness_lib.runs.agent_process import AgentExit, Listener
from harness_lib.runs.waiting import HeldBackError, StuckError, halting_task
from harness_lib.state.api import Questions
from harness_lib.system.git import checkout, locks, trees
from harness_lib.task import Category, Task
from harness_lib.text import sentence

SEE_TO_IT = "Log in, add credit with the provider, or name another model (--model); then: harness run"
# Of an attempt that needs no agent.
NOBODY = AgentExit("ended", "", Report(), 0.0, Path())
BLAME: dict[str, Category] = {
    "silent": "TIMEOUT",
    "circling": "TIMEOUT",
    "long": "TIMEOUT",
    "over": "TASK_EXEC",
}
CRASHES = 2
# An agent that ends without doing anything cannot start; another try is useless. A command of the user's need
# not say what it does: it has done nothing if it ends at once. Some take ten seconds to fail.
AT_ONCE_SECONDS = 30.0
# Its program may be in the middle of an update if it has worked before.
UPDATE_SECONDS = (10.0, 60.0)
PAUSES = (5.0, 15.0, 45.0, 120.0, 300.0, 600.0, 600.0, 600.0)
UNKNOWN_LIMIT_SECONDS = 900.0
# Seconds by which a provider's clock may differ from ours.
AFTER_RESET_SECONDS = 5.0
SLICE_SECONDS = 1.0
# A shell's exit code is 128 plus the number of the signal that killed its command.
BY_SIGNAL = 128


class WorkerPort(Protocol):
    """What an attempt needs of its worker."""

    adapter: Adapter
    known: check.Known
    has_worked: bool

    @property
    def config(self) -> options.AgentOptions:
        """Return how agents are to be started."""
        ...

    def tell(self, news: News) -> None:
        """Send an event to the run."""
        ...

    def rules(self) -> options.Rules:
        """Return the limits of an agent now."""
        ...

    def held_back(self) -> str:
        """Return why no further agent may start; "" if one may."""
        ...


class Tries:
    """The agents of one attempt so far: how many, what they have spent, and excused failures."""

    def __init__(self) -> None:
        self.crashes = 0
        self.pauses = 0
        self.agents = 0
        self.spent = run_state.Spent()


def run(ctx: Context, task: Task, worker: WorkerPort) -> outcome.Ended:
    """Take the claimed `task` to its end, and return it.

    Raises StuckError (the user must act; the claim stays), LeaseLostError, and CheckEditedError.
    """
    if complete.is_accepted(task):
        worker.tell(Stepped("checks"))
        with halting_task():
            return complete.finish(ctx, task)
    green = _is_green(ctx, task, worker)
    is_needed = not (green and worker.config.skip_green)
    agent_exit = _work(ctx, task, worker, requeue.apply(ctx, task)) if is_needed else NOBODY
    if agent_exit.denied:
        worker.tell(Notice("sandbox", f"{task.id}: {agent_exit.denied}"))
    if not worker_worktrees.is_there(ctx.git):
        reason = f"the agent has deleted its work tree {ctx.git.top}, or made another repository of it"
        return rollback.fail_without_git(ctx, task, outcome.Verdict("TASK_EXEC", reason))
    worker.tell(Stepped("checks"))
    with halting_task(CheckEditedError):
        for _ in range(outcome.EDITS):
            with suppress(CheckEditedError):
                return _end(ctx, task, worker, agent_exit, green=green)
        return _end(ctx, task, worker, agent_exit, green=green)


def _end(
    ctx: Context, began: Task, worker: WorkerPort, agent_exit: AgentExit, *, green: bool | None
) -> outcome.Ended:
    """Check the work of the attempt, and complete or merge it, or roll it back."""
    # Notes, checkpoints, renewals and the user may have changed the task meanwhile.
    task = _mine(ctx, began, worker)
    was_green = green if task.validation == began.validation else None
    evaluation = _evaluate(ctx, ctx.ask(), task, worker.known, green=was_green)
    if not evaluation.checked.passed:
        waiting.require_room(ctx, ctx.git.top)
        # Only now is the agent's end a failure: the work of an agent that was stopped may be done.
        blame = BLAME.get(agent_exit.how)
        verdict = outcome.Verdict(blame, agent_exit.why) if blame else evaluation.verdict()
        verdict = _explained(ctx, verdict, agent_exit, evaluation.checked)
        return rollback.roll_back(ctx, task, verdict)
    inspection.refuse_large(ctx, task, evaluation.tree, worker.config.max_file)
    worker.tell(Stepped("merges"))
    task = _mine(ctx, task, worker)
    return complete.complete(ctx, task, evaluation, worker.known)


def _explained(
    ctx: Context, verdict: outcome.Verdict, agent_exit: AgentExit, failed: Checked
) -> outcome.Verdict:
    """Return `verdict` with what the run knows of its cause beside what the check said."""
    crashed = f"{agent_exit.why[:1].upper()}{agent_exit.why[1:]}" if agent_exit.how == "crashed" else ""
    # How it crashed ends with what was denied.
    for more in (crashed, agent_exit.denied, brought.lacked(ctx, failed.tail)):
        if more not in verdict.message:
            verdict = verdict._replace(message=f"{sentence(verdict.message)} {more}")
    return verdict


def _mine(ctx: Context, task: Task, worker: WorkerPort) -> Task:
    """Return the task as it is now, once the database is there: no agent works again because it was away.

    Raises LeaseLostError, AwayError after half an hour.
    """
    return waiting.until_it_works(
        ctx, lambda line: worker.tell(Away(line)), lambda: outcome.require_claim(ctx.store.ask_now(), task)
    )


def _is_green(ctx: Context, task: Task, worker: WorkerPort) -> bool | None:
    """Return whether the check passes before any work; None if that is not asked, or unknown."""
    is_first = task.attempts == 0 and not task.handback and not task.validation.red_first
    if not is_first or not worker.config.precheck:
        return None
    worker.tell(Stepped("checks"))
    checked = evaluate.before_work(ctx, task, worker.known)
    if not checked or checked.verdict == "ENV_SETUP":
        _refuse_known(ctx, task, checked)
        return None
    return checked.passed


def _refuse_known(ctx: Context, task: Task, checked: Checked | None) -> None:
    """Raise StuckError if the check cannot run for the reason that stopped another task after its work.

    An agent could change nothing about that, and each would cost as much as the first. What belongs in the
    work tree, such as node_modules/.bin/jest, it can make.
    """
    lacked = confinement.missing_program(checked.message) if checked else ""
    place = Path(os.path.normpath(ctx.git.top / (task.validation.cwd or "") / lacked))
    if not checked or ("/" in lacked and place.is_relative_to(ctx.git.top)):
        return
    reason, halted = f"{sentence(checked.message)} ", ctx.ask().halted()
    if any(reason in f"{other.halt} " for other in halted if other.halt_kind == "ENV_SETUP"):
        raise StuckError(EnvSetupError.kind, evaluate.cannot_run(task, checked))


def _evaluate(
    ctx: Context, questions: Questions, task: Task, known: check.Known, *, green: bool | None
) -> evaluate.Evaluation:
    """Run the check on the work; if it passed before any work, record what that means.

    A check that passed before and fails now runs once more if it is short.
    """
    evaluation = evaluate.evaluate(ctx, questions, task, known=known)
    if not green:
        return evaluation
    base = task.started_at_commit
    if evaluation.checked.passed and base is not None and evaluation.tree == ctx.git.tree_of(base):
        said = (*evaluation.said, evaluate.ALREADY_DONE)
        return evaluation._replace(said=said, done_as="already_done")
    if evaluation.checked.passed:
        return evaluation._replace(said=(*evaluation.said, evaluate.PASSED_BEFORE))
    if not evaluation.tree or not recheck.is_worth_repeating(evaluation.checked):
        return evaluation
    again = evaluate.evaluate(ctx, questions, task, suffix="-again", known=known)
    if not again.checked.passed:
        return evaluation
    return again._replace(said=(*again.said, recheck.FLAKY), done_as="flaky")


def _work(ctx: Context, task: Task, worker: WorkerPort, handback: str) -> AgentExit:
    """Let agents work until one ends by itself, or for a reason that ends the attempt."""
    tries, interrupted = Tries(), ""
    while True:
        tries.agents += 1
        worker.tell(Stepped("works"))
        agent_exit = _one(
            ctx, task, worker, tries, agent_process.brief(ctx, task, worker.rules(), handback, interrupted)
        )
        tries.spent = run_state.Spent(
            tries.spent.cost + (agent_exit.report.cost_usd or 0.0),
            tries.spent.tokens + agent_exit.report.tokens,
            tries.spent.seconds + agent_exit.seconds,
        )
        _keep_spent(ctx, task, agent_exit)
        said = agent_exit.report
        worker.tell(Said(said.last, tries.spent.tokens, tries.spent.cost, said.session))
        if agent_exit.how == "login":
            hint = f"{SEE_TO_IT}{confinement.way_out(ctx.env)}"
            raise StuckError("ENV_SETUP", agent_exit.why, hint, everywhere=True)
        if not goes_on(ctx, task, worker, agent_exit, tries):
            return agent_exit
        interrupted = agent_exit.why


def _keep_spent(ctx: Context, task: Task, agent_exit: AgentExit) -> None:
    """Record what an agent has used up; if that fails, the run still reports it."""
    cost, tokens = agent_exit.report.cost_usd or 0.0, agent_exit.report.tokens
    if not cost and not tokens:
        return
    with suppress(HeldError, ConfigError, StateUnreadableError, LeaseLostError), ctx.transaction() as tx:
        tx.replace(attempts.spend(outcome.require_claim(tx, task), cost, tokens))


def _one(ctx: Context, task: Task, worker: WorkerPort, tries: Tries, brief: str) -> AgentExit:
    last_report, renews = Report(), check.renewing(ctx, task)

    def on_poll(listener: Listener) -> None:
        nonlocal last_report
        if listener.report != last_report:
            last_report = listener.report
            spent = listener.spent()
            worker.tell(Said(last_report.last, spent.tokens, spent.cost, last_report.session))
        if renews():
            dialogue.keep_elsewhere(ctx, task)
        _read_inbox(ctx, worker)
        listener.hold_to(worker.rules())

    agent_exit = agent_process.run(
        ctx,
        task,
        worker.adapter,
        brief,
        worker.rules(),
        on_poll,
        number=tries.agents,
        before=tries.spent,
        model=worker.config.model,
        extra=worker.config.extra,
    )
    _read_inbox(ctx, worker)
    if worker_worktrees.is_there(ctx.git):
        worker_worktrees.take_in(ctx, ctx.git, task)
    return agent_exit


def _read_inbox(ctx: Context, worker: WorkerPort) -> None:
    for problem in dialogue.open_all(ctx):
        worker.tell(Notice("warning", problem))


def goes_on(ctx: Context, task: Task, worker: WorkerPort, agent_exit: AgentExit, tries: Tries) -> bool:
    """Return whether another agent continues this attempt, after waiting for what blocks it.

    Raises StuckError (the user must act), HeldBackError (the run starts no further agent).
    """
    if not worker_worktrees.is_there(ctx.git):
        return False
    if agent_exit.how == "limit":
        seconds = _until_reset(ctx, agent_exit) or UNKNOWN_LIMIT_SECONDS
        _pause(ctx, task, worker, "limit", seconds, agent_exit.why)
        return True
    if agent_exit.how == "transient":
        if tries.pauses == len(PAUSES):
            reason = f"the agent cannot reach its provider: {agent_exit.why}"
            raise StuckError("ENV_SETUP", reason, "Try again later: harness run", everywhere=True)
        tries.pauses += 1
        seconds = max(PAUSES[tries.pauses - 1], _until_reset(ctx, agent_exit))
        _pause(ctx, task, worker, "pauses", seconds, agent_exit.why)
        return True
    return _starts_again(ctx, task, worker, agent_exit, tries)


def _starts_again(ctx: Context, task: Task, worker: WorkerPort, agent_exit: AgentExit, tries: Tries) -> bool:
    """Return whether another agent follows one that has crashed, or that has ended without doing anything."""
    report, why = agent_exit.report, agent_exit.why
    ended = agent_exit.how == "ended" and worker.adapter.exit_tells
    if not ended and (agent_exit.how != "crashed" or _has_finished(ctx, task, worker, agent_exit)):
        return False
    did = (tries.spent.tokens, tries.spent.cost, report.actions, report.said)
    is_idle = not any(did) and not _has_changed(ctx, task)
    if ended and not is_idle:
        return False
    if ended:
        why = f"the agent ended and did nothing: {report.last or 'it printed nothing'}"
    waiting.require_room(ctx, ctx.git.top)
    tries.crashes += 1
    if tries.crashes <= CRASHES:
        may_be_updated = is_idle and worker.has_worked
        pause = UPDATE_SECONDS[tries.crashes - 1] if may_be_updated else float(tries.crashes)
        _pause(ctx, task, worker, "pauses", pause, why)
        return True
    if is_idle and (worker.adapter.exit_tells or agent_exit.seconds < AT_ONCE_SECONDS):
        hint = f"See its output: {agent_exit.log}. Then: harness run{confinement.way_out(ctx.env)}"
        reason, then = f"the agent cannot start: {why}", typed.harness("retry", task.id)
        raise StuckError("ENV_SETUP", reason, hint, halts_as="UNSTARTED", then=then)
    return False


def _has_finished(ctx: Context, task: Task, worker: WorkerPort, agent_exit: AgentExit) -> bool:
    """Return whether the check passes after an agent whose exit code is not conclusive."""
    if worker.adapter.exit_tells or not 0 < (agent_exit.code or 0) < BY_SIGNAL or not _has_changed(ctx, task):
        return False
    worker.tell(Stepped("checks"))
    with halting_task():
        questions = ctx.ask()
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
    if not resets:
        return 0.0
    return max(0.0, (resets - ctx.clock.now()).total_seconds()) + AFTER_RESET_SECONDS


def _has_changed(ctx: Context, task: Task) -> bool:
    """Return whether the attempt has changed or committed anything in the work tree."""
    head = ctx.git.head()
    return head is None or head != task.started_at_commit or ctx.capture() != ctx.git.tree_of(head)


def _pause(ctx: Context, task: Task, worker: WorkerPort, step: Step, seconds: float, why: str) -> None:
    """Wait, renewing the claim; the run shows until when.

    Raises HeldBackError as soon as the run starts no further agent.
    """
    until = ctx.clock.now() + timedelta(seconds=max(0.0, seconds))
    # The monotonic clock stops while a laptop sleeps; the wall clock may be set back.
    worker.tell(Stepped(step, until.timestamp(), why))
    end = ctx.clock.monotonic() + max(0.0, seconds)
    renew = check.renewing(ctx, task)
    while True:
        if ending := worker.held_back():
            raise HeldBackError(f"{ending} while its agent waited: {why}")
        left = end - ctx.clock.monotonic()
        if left <= 0 or ctx.clock.now() >= until:
            return
        ctx.clock.sleep(min(SLICE_SECONDS, left))
        renew()

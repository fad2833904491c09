"""One attempt at a claimed task by an unattended worker: agents until one is done, then the check decides.

What is nobody's fault is not counted as an attempt: a usage limit is waited out, trouble of the provider's is
tried again after growing pauses, and a crashed agent is followed by a fresh one in the same work tree.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from harness_lib.agents.adapter import Adapter, Report
from harness_lib.attempts import (
    branch_guard,
    check,
    complete,
    evaluate,
    inbox,
    large_files,
    leased_check,
    outcome,
    restore_handback,
    rollback,
    worktree_slots,
)
from harness_lib.checks import check_of
from harness_lib.core.context import Context
from harness_lib.errors import (
    ConfigError,
    EnvSetupError,
    HarnessError,
    HeldError,
    LeaseLostError,
    RefusedError,
    StateUnreadableError,
)
from harness_lib.rules import attempts, budget, halting
from harness_lib.rules.events import News, Notice, Said, Step, Stepped
from harness_lib.runs import agent_process, prompt, repository_guard
from harness_lib.runs.agent_process import AgentExit, Listener, Rules
from harness_lib.system.git import checkout, locks, snapshot, trees
from harness_lib.task import Category, HaltKind, Session, Task

CRASHES = 2
SEE_TO_IT = "Log in, or add credit with the provider, as it says; then: harness run"
# An agent that ends at once and has done nothing cannot start; another try tells nothing new.
AT_ONCE_SECONDS = 10.0
PAUSES = (5.0, 15.0, 45.0, 120.0, 300.0, 600.0, 600.0, 600.0)
UNKNOWN_LIMIT_SECONDS = 900.0
# A provider's clock and ours differ.
AFTER_RESET_SECONDS = 5.0
SLICE_SECONDS = 1.0
# A shell ends with 128 and the number of the signal that has killed its command.
BY_SIGNAL = 128
BLAME: dict[str, Category] = {
    "silent": "TIMEOUT",
    "circling": "TIMEOUT",
    "long": "TIMEOUT",
    "over": "TASK_EXEC",
}


class WorkerPort(Protocol):
    """What an attempt needs of the worker that makes it."""

    adapter: Adapter

    @property
    def config(self) -> AgentOptions:
        """Return what the run wants of agents."""
        ...

    def tell(self, news: News) -> None:
        """Send an event to the run."""
        ...

    def rules(self) -> Rules:
        """Return what an agent may take now."""
        ...


class AgentOptions(Protocol):
    """How agents are to be started."""

    @property
    def model(self) -> str | None: ...  # noqa: D102 - a word of the agent's own

    @property
    def extra(self) -> tuple[str, ...]: ...  # noqa: D102 - likewise

    @property
    def max_file(self) -> float: ...  # noqa: D102 - megabytes that nobody has to be asked about


@dataclass
class StuckError(Exception):
    """A person must act; `everywhere`: for this task and for every other one.

    `unstarted`: the agent ended before it did anything, which may be the task's doing or the agent's.
    `halts_as`: what halts the task, if it is not that.
    """

    kind: str
    reason: str
    hint: str = ""
    everywhere: bool = False
    unstarted: bool = False
    halts_as: HaltKind = "ENV_SETUP"


def run(ctx: Context, session: Session, task: Task, worker: WorkerPort) -> outcome.Ended:
    """Take the claimed `task` to its end and return it.

    Raises StuckError (a person must act: the claim still stands), LeaseLostError.
    """
    _require_check(ctx, task)
    agent_exit = _work(ctx, task, worker, restore_handback.apply(ctx, task))
    if not worktree_slots.is_there(ctx.git):
        reason = f"the agent has deleted its work tree {ctx.git.top}, or made another repository of it"
        return rollback.fail_without_git(ctx, session, task, outcome.Verdict("TASK_EXEC", reason))
    worker.tell(Stepped("checks"))
    try:
        # Notes, checkpoints and renewals have changed it meanwhile.
        questions = ctx.store.ask()
        task = outcome.still_claimed(questions, task)
        evaluation = evaluate.judge(ctx, questions, task)
        if not evaluation.checked.passed:
            # Only now is anybody to blame: the work of an agent that did not come to an end may be done.
            verdict = _blame(agent_exit) or evaluation.verdict()
            return rollback.roll_back(ctx, session, task, verdict)
        large_files.refuse(ctx, task, evaluation.tree, worker.config.max_file)
        worker.tell(Stepped("merges"))
        return complete.complete(ctx, session, task, evaluation)
    except (ConfigError, EnvSetupError, RefusedError) as error:
        raise _stuck(error) from error


def _blame(agent_exit: AgentExit) -> outcome.Verdict | None:
    return outcome.Verdict(BLAME[agent_exit.how], agent_exit.why) if agent_exit.how in BLAME else None


def _require_check(ctx: Context, task: Task) -> None:
    try:
        questions = ctx.store.ask()
        check.require_check(task, questions.position(outcome.still_claimed(questions, task).id))
        check_of(task).require_place(ctx.git.top)
    except ConfigError as error:
        raise _stuck(error) from error


def _stuck(error: HarnessError) -> StuckError:
    return StuckError(error.kind, error.message, error.hint or "", halts_as=halting.of_error(error))


class _Tries:
    """What has gone wrong so far in this attempt without being anybody's fault."""

    def __init__(self) -> None:
        self.crashes = 0
        self.pauses = 0
        self.agents = 0
        self.spent = budget.Spent()


def _work(ctx: Context, task: Task, worker: WorkerPort, handback: str) -> AgentExit:
    """Let agents work until one has ended by itself, or for a reason that ends the attempt."""
    tries, interrupted = _Tries(), ""
    while True:
        tries.agents += 1
        worker.tell(Stepped("works"))
        agent_exit = _one(
            ctx, task, worker, tries, prompt.of(ctx, task, worker.rules(), handback, interrupted)
        )
        tries.spent = _add(tries.spent, agent_exit)
        _keep_spent(ctx, task, agent_exit)
        worker.tell(Said(agent_exit.report.last, tries.spent.tokens, tries.spent.cost))
        if agent_exit.how == "told":
            raise KeyboardInterrupt
        if agent_exit.how == "login":
            raise StuckError("ENV_SETUP", agent_exit.why, SEE_TO_IT, everywhere=True)
        if not _goes_on(ctx, task, worker, agent_exit, tries):
            return agent_exit
        interrupted = agent_exit.why


def _keep_spent(ctx: Context, task: Task, agent_exit: AgentExit) -> None:
    """Write down what an agent has used up; what nobody can write now is told by the run all the same."""
    cost, tokens = agent_exit.report.cost_usd or 0.0, agent_exit.report.tokens
    if not cost and not tokens:
        return
    with (
        suppress(HeldError, ConfigError, StateUnreadableError, LeaseLostError),
        ctx.store.transaction() as tx,
    ):
        tx.replace(attempts.spend(outcome.require_claim(tx, task), cost, tokens))


def _one(ctx: Context, task: Task, worker: WorkerPort, tries: _Tries, brief: str) -> AgentExit:
    last_report = Report()

    def on_poll(listener: Listener) -> bool:
        nonlocal last_report
        if listener.report != last_report:
            last_report = listener.report
            spent = listener.spent()
            worker.tell(Said(last_report.last, spent.tokens, spent.cost))
        _renew(ctx, task, listener)
        _read_inbox(ctx, worker)
        listener.hold_to(worker.rules())
        return True

    seen = repository_guard.observe(ctx.git)
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
    if worktree_slots.is_there(ctx.git):
        # Whatever git the agent had started is dead now.
        worktree_slots.unlock(ctx, ctx.git)
        _look_after_repository(ctx, seen, task, worker)
    return agent_exit


def _look_after_repository(ctx: Context, seen: repository_guard.Seen, task: Task, worker: WorkerPort) -> None:
    """Undo what the agent has done to what is not its own."""
    target, base = task.gate.target if task.gate else None, task.started_at_commit
    undone = repository_guard.undo(ctx, seen, task)
    for message in [*undone, *(branch_guard.after_agent(ctx, target, base) if target and base else ())]:
        worker.tell(Notice("warning", message))


def _read_inbox(ctx: Context, worker: WorkerPort) -> None:
    for problem in inbox.open_all(ctx):
        worker.tell(Notice("warning", problem))


def _goes_on(ctx: Context, task: Task, worker: WorkerPort, agent_exit: AgentExit, tries: _Tries) -> bool:
    """Return whether another agent goes on with this attempt, once what stands in its way is over."""
    if not worktree_slots.is_there(ctx.git):
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
    if agent_exit.seconds < AT_ONCE_SECONDS and _has_done_nothing(ctx):
        hint = f"See what it said: {agent_exit.log}. Then: harness run"
        raise StuckError("ENV_SETUP", f"the agent cannot start: {agent_exit.why}", hint, unstarted=True)
    return False


def _has_finished(ctx: Context, task: Task, worker: WorkerPort, agent_exit: AgentExit) -> bool:
    """Return whether the check passes after an agent whose exit code says little."""
    if worker.adapter.exit_tells or not 0 < (agent_exit.code or 0) < BY_SIGNAL or _has_done_nothing(ctx):
        return False
    worker.tell(Stepped("checks"))
    try:
        questions = ctx.store.ask()
        evaluation = evaluate.judge(ctx, questions, outcome.still_claimed(questions, task))
    except (ConfigError, EnvSetupError, RefusedError) as error:
        raise _stuck(error) from error
    if evaluation.checked.passed:
        return True
    if evaluation.tree:
        _undo_check(ctx, evaluation.tree)
    return False


def _undo_check(ctx: Context, tree: str) -> None:
    """Give the work tree the content of `tree` again: what differs was made by a check of it."""
    git = ctx.git
    with locks.hold(git):
        checkout.apply(git, trees.changed(git, snapshot.capture(git, ctx.keep_out), tree))


def _until_reset(ctx: Context, agent_exit: AgentExit) -> float:
    """Return in how many seconds the agent may go on, as far as its provider has said; 0 where it has not."""
    resets = agent_exit.report.trouble.resets_at if agent_exit.report.trouble else None
    if resets is None:
        return 0.0
    return max(0.0, (resets - ctx.clock.now()).total_seconds()) + AFTER_RESET_SECONDS


def _has_done_nothing(ctx: Context) -> bool:
    head = ctx.git.head()
    return head is not None and snapshot.capture(ctx.git, ctx.keep_out) == ctx.git.tree_of(head)


def _add(before: budget.Spent, agent_exit: AgentExit) -> budget.Spent:
    return budget.Spent(
        before.cost + (agent_exit.report.cost_usd or 0.0),
        before.tokens + agent_exit.report.tokens,
        before.seconds + agent_exit.seconds,
    )


def _pause(ctx: Context, task: Task, worker: WorkerPort, step: Step, seconds: float, why: str) -> None:
    """Wait, with the claim kept alive; the run shows until when."""
    until = ctx.clock.now() + timedelta(seconds=max(0.0, seconds))
    # The monotonic clock stands still while a laptop sleeps, the other one may be set back.
    worker.tell(Stepped(step, until.timestamp(), why))
    end = ctx.clock.monotonic() + max(0.0, seconds)
    renewed = ctx.clock.monotonic()
    while (left := end - ctx.clock.monotonic()) > 0 and ctx.clock.now() < until:
        ctx.clock.sleep(min(SLICE_SECONDS, left))
        if ctx.clock.monotonic() - renewed > ctx.lease_seconds / 3:
            renewed = ctx.clock.monotonic()
            leased_check.renew(ctx, task)


def _renew(ctx: Context, task: Task, listener: Listener) -> None:
    """Renew the lease three times in its life."""
    due = math.floor(listener.seconds() / (ctx.lease_seconds / 3))
    if due > listener.renewals:
        listener.renewals = due
        leased_check.renew(ctx, task)

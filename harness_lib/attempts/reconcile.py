"""Take over what a session that is gone has left in progress, by the matrix of `rules/recovery`.

First whatever a killed process had under way in git is finished, then each interrupted task goes through
the decision matrix with facts from git, checkpoints and, where the matrix says so, its check. The task of a
worker that is gone is requeued, as often as it takes, and given up in the end. The run and the next worker
of that name may both be at it: whoever has lost the claim changes nothing, since the task, its work tree
and its check may be another worker's by then.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, NamedTuple

from harness_lib import errors, timestamps, typed
from harness_lib.attempts import (
    check,
    complete,
    dialogue,
    evaluate,
    interrupted,
    outcome,
    requeue,
    rescue_refs,
    rollback,
    target_branch,
    worker_worktrees,
)
from harness_lib.checks import fingerprint
from harness_lib.core import lifecycle, ownership, sessions, trust
from harness_lib.core.context import Context
from harness_lib.errors import AwayError, BusyError, HarnessError, HeldError, LeaseLostError
from harness_lib.rules import recovery, transitions
from harness_lib.rules.attempts import Ending
from harness_lib.state.api import Questions, Tx
from harness_lib.system.git import locks, trees
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import runner
from harness_lib.task import Checkpoint, Gate, StopReason, Task
from harness_lib.text import Strings


class Report(NamedTuple):
    """What recovery did, one line per task, and why the session is over if it is."""

    recovered: Strings = ()
    warnings: Strings = ()
    stop: StopReason | None = None


def reclaim_interrupted(ctx: Context, *, fresh: bool, of_others: bool = False) -> Report:
    """Recover all that the session may recover, one task after another.

    In a `fresh` session everything that bears its worker's name is interrupted; later only what a killed
    command of harness has left unfinished. `of_others`: only what other sessions have left.
    Raises RefusedError (untrusted commands, the user's merge or the like is under way), ConfigError (no
    check), EnvSetupError; the session is halted.
    """
    target_branch.mend(ctx)
    recovered: list[str] = []
    warnings: list[str] = []
    seen: set[str] = set()
    while True:
        found = _take_over_next(ctx, seen, fresh=fresh, of_others=of_others)
        if not found:
            return Report(tuple(recovered), tuple(warnings))
        task, has_files = found
        is_ours = has_files and ctx.is_of_session(task)
        if is_ours:
            # What a worker that lives has started is its own, like its files.
            runner.end_all(check.log_directory(ctx, task))
        try:
            line, ended, warned = _recover_next(ctx, task, has_files=has_files)
        except LeaseLostError:
            if is_ours:
                raise
            # Several saw that the lease of a living worker had run out, and another one was faster.
            continue
        warnings += warned
        recovered.append(line)
        if ended:
            warnings += ended.said
            if ended.stop in ("done", "blocked", "max_tasks_per_session"):
                return Report(tuple(recovered), tuple(warnings), ended.stop)


def _recover_next(ctx: Context, task: Task, *, has_files: bool) -> tuple[str, outcome.Ended | None, Strings]:
    """Recover one task; return the line that tells it, how the attempt ended if it did, and warnings."""
    worktree = interrupted.work_tree(ctx, task) if has_files else None
    if worktree is None:
        return *_without_work_tree(ctx, task), ()
    is_ours = ctx.is_of_session(task)
    warned = tuple(dialogue.open_all(ctx.at(worktree))) if is_ours else ()
    if is_ours:
        worker_worktrees.take_in(ctx, worktree, task)
    try:
        stays = worktree.top == ctx.git.top
        return *_recover_one(ctx.at(worktree), task, stays=stays), warned
    except AwayError:
        raise
    except HeldError as error:
        if not is_ours or not worker_worktrees.is_ours(ctx, worktree):
            raise
        # Nobody is to wait for it: another work tree is made for the rest.
        return f"{task.id}: {interrupted.give_up(ctx, task, error).halt}", None, warned


def take_from_dead_worker(ctx: Context, task: Task) -> Task:
    """Claim `task` of a worker of this very session that was killed, and end what it has left running.

    Raises LeaseLostError, and ends nothing, if the claim is no longer the one that `task` shows.
    """
    with ctx.transaction("tasks") as tx:
        taken = transitions.resume(
            outcome.require_claim(tx, task),
            worker=ctx.owner.worker,
            now=tx.now,
            worktree=task.worktree,
            lease_seconds=ctx.lease_seconds if tx.concurrent else None,
        )
        tx.replace(taken)
    runner.end_all(check.log_directory(ctx, task))
    return taken


def hand_back(ctx: Context, taken: Task) -> interrupted.Recovered:
    """Recover what `take_from_dead_worker` has claimed; return what was done, and how the attempt ended.

    A worker's death counts as no attempt: what is under way in git is finished, other work is handed back as
    it stands.
    """
    worktree = interrupted.work_tree(ctx, taken)
    if not worktree:
        return _without_work_tree(ctx, taken)
    worker_worktrees.take_in(ctx, worktree, taken)
    if taken.intent:
        return _recover_one(ctx.at(worktree), taken, stays=False)
    problems = dialogue.open_all(ctx.at(worktree))
    reason = "its worker has ended"
    ended = requeue.interrupted(ctx.at(worktree), taken, reason)
    line = interrupted.log(ctx, taken, "hand back what was done", reason)
    return " ".join([line, *problems]), ended


def _take_over_next(
    ctx: Context, seen: set[str], *, fresh: bool, of_others: bool
) -> tuple[Task, bool] | None:
    """Take over the next interrupted task: from here on its old holder can record nothing.

    Return it, and whether its files may be asked: if machines share the list, not those of a worker that may
    live, here or elsewhere. What it has pushed says enough.
    """
    branch = ctx.git.branch()
    with ctx.transaction("tasks") as tx:
        for found in tx.in_progress():
            if found.id in seen or not _may_recover(tx, found, ctx, fresh=fresh):
                continue
            if of_others and ctx.is_of_session(found):
                continue
            # Another machine may be about to recover it.
            task = tx.task_if_free(found.id)
            if not task or not _may_recover(tx, task, ctx, fresh=fresh):
                continue
            seen.add(task.id)
            task = recovery.placed(task)
            is_elsewhere = _is_worked_on_elsewhere(tx, task, ctx)
            is_shared = ctx.shared is not None
            # The legacy protocol does not write down in which work tree a worker of concurrent mode is.
            is_nowhere = tx.concurrent and task.worktree is None and not ctx.is_of_session(task)
            if not is_shared and (is_elsewhere or is_nowhere):
                return task, True
            taken = transitions.resume(
                _gated(task, branch),
                worker=ctx.owner.worker,
                now=tx.now,
                # Of machines that share the list, work without one waits in the remote for its merge.
                worktree=task.worktree or (None if is_shared else str(ctx.git.top)),
                lease_seconds=ctx.lease_seconds if tx.concurrent else None,
            )
            tx.replace(taken)
            if ctx.holds(task):
                tx.on_commit(partial(ownership.renew_claim, ctx, task, taken))
            return taken, not (is_elsewhere and is_shared)
    return None


def _gated(task: Task, branch: str | None) -> Task:
    """Return `task` with a gate if an agent of the legacy protocol, which knows none, has claimed it."""
    if task.gate is None and task.worktree is None:
        return task._replace(gate=Gate(fingerprint(task), task.validation.cwd, branch=branch))
    return task


def _may_recover(tx: Tx, task: Task, ctx: Context, *, fresh: bool) -> bool:
    is_mine = ctx.holds(task)
    if not fresh and is_mine and not ownership.is_left_elsewhere(ctx, task, tx):
        return task.intent is not None
    return recovery.recoverable(
        task,
        concurrent=tx.concurrent,
        worker=ctx.session.worker,
        now=tx.now,
        live_owner_holds=_is_worked_on_elsewhere(tx, task, ctx),
    )


def _is_worked_on_elsewhere(questions: Questions, task: Task, ctx: Context) -> bool:
    """Return whether another worker, with an open session and a living process, claimed `task`."""
    return not ctx.is_of_session(task) and sessions.worker_is_live(task.claimed_by, questions, ctx)


def _without_work_tree(ctx: Context, task: Task) -> interrupted.Recovered:
    """Recover `task`, whose work tree is gone or on another machine."""
    if not ctx.shared:
        reason = f"{recovery.ran_out(task.claimed_by)}, and where it worked is not known"
        if task.worktree:
            reason = f"its work tree {task.worktree} is not in this repository any more"
        reason += "; nothing was touched"
        if kept := _outlived(ctx, task):
            reason += "; what it had committed or recorded is kept"
            ended = rollback.keep_for_the_next(ctx, task, reason, kept)
            return interrupted.log(ctx, task, "keep the work for the next attempt", reason), ended
        return _failed(ctx, task, reason)
    return interrupted.take_over(ctx, task)


def _outlived(ctx: Context, task: Task) -> str | None:
    """Keep the last work of an attempt, without its work tree; return the ref, or None if nothing is left.

    That is the commit under way, what its last checkpoint has seen, or what is committed on its branch since.
    """
    git, base = ctx.git, ctx.git.commit_called(task.started_at_commit)
    if task.intent:
        commit = task.intent.commit or ""
        if not recovery.is_object(commit) or not git.exists(commit):
            return None
        return rescue_refs.keep_commit(git, task, commit)
    if base is None:
        return None
    # Claims of the legacy protocol do not record their branch.
    tip = rescue_refs.branch_tip(git, task) if task.gate else None
    tip = tip if tip and git.is_ancestor(base, tip) else base
    point = task.checkpoints[-1] if task.checkpoints else None
    tree = git.tree_of(tip)
    if point and point.tree and git.object_exists(point.tree) and (tip == base or _is_after(git, point, tip)):
        tree = point.tree
    tree = trees.without(git, tree, rescue_refs.still_untracked(git, tip, task))
    if tree == git.tree_of(base):
        return None
    with locks.hold(git):
        return rescue_refs.keep(git, rescue_refs.attempt_ref(task), tree, tip, f"rescued work of {task.id}")


def _is_after(git: Git, point: Checkpoint, commit: str) -> bool:
    committed = int(git.text("log", "--no-walk", "--format=%ct", commit))
    return timestamps.parse(point.timestamp or "").timestamp() > committed


def _recover_one(ctx: Context, task: Task, *, stays: bool) -> interrupted.Recovered:
    """Return the line that tells what was done, and how the attempt ended if it did.

    `stays`: whoever recovers works in the work tree of the attempt.
    """
    if not ctx.is_of_session(task):
        return _leave_files_to_the_living(ctx, task)
    with lifecycle.halting_on_error(ctx, task.id):
        outcome.require_no_operation(ctx.git, task, "harness recover")
    if task.intent:
        action = f"finish the interrupted {task.intent.action}"
        with lifecycle.halting_on_error(ctx, task.id):
            ended = interrupted.resume(ctx, task)
        return interrupted.log(ctx, task, action, "a command was killed in the middle"), ended
    plan = recovery.plan(interrupted.facts(ctx, task))
    if plan.action == "validate":
        return _validate(ctx, task, plan, stays=stays)
    if plan.action == "fail" and not interrupted.awaits_its_work(ctx, task):
        # There is nothing in git that would have to go back.
        return _failed(ctx, task, plan.reason, ending=plan.ending)
    with lifecycle.halting_on_error(ctx, task.id):
        rollback.require_trust(ctx, task)
    if plan.action == "fail":
        return interrupted.put_back(ctx, task, stays=stays)
    return interrupted.go_on(ctx, task, plan.words, plan.reason, stays=stays)


def _leave_files_to_the_living(ctx: Context, task: Task) -> interrupted.Recovered:
    """Take the task, whose lease has run out, from a worker that still lives: its files are its own.

    What it has made so far is rescued, its work tree is left alone, and it will find its claim gone.
    """
    rescue = rescue_refs.rescue_only(ctx, task)
    expired = f"{recovery.ran_out(task.claimed_by)} at {task.lease_expires_at}"
    reason = f"{expired}; its work so far is kept: {typed.harness('rescue', 'show', rescue)}"
    return _failed(ctx, task, reason, "mark failed, leave the work tree to its worker")


def _failed(
    ctx: Context,
    task: Task,
    reason: str,
    words: str = "mark failed",
    ending: Ending = Ending.FAILED,
) -> tuple[str, outcome.Ended]:
    """Record that the attempt has failed, and touch nothing in git."""
    verdict = outcome.Verdict("SESSION_TIMEOUT", reason, ending)
    ended = rollback.fail_without_git(ctx, task, verdict)
    return interrupted.log(ctx, task, words, reason), ended


def _validate(ctx: Context, task: Task, plan: recovery.Plan, *, stays: bool) -> interrupted.Recovered:
    """Let the check decide whether it is done, with everything as the interrupted attempt left it."""
    if not trust.knows(ctx, task):
        reason = f"{plan.reason}; its check is not trusted on this machine"
        return interrupted.go_on(ctx, task, "resume", reason, stays=stays)
    left = ctx.capture()
    with lifecycle.halting_on_error(ctx, task.id):
        questions = ctx.ask()
        evaluation = evaluate.evaluate(ctx, questions, ownership.require_task(questions, task.id))
    if evaluation.checked.passed:
        ended = complete.complete(ctx, task, evaluation)
        halt = ended.task.halt
        then = "hand back" if evaluation.against else "leave it to the user" if halt else "mark completed"
        line = interrupted.log(ctx, task, f"{plan.words}; {then}", f"{plan.reason}; the check passed")
        return (f"{line}: {halt}" if halt else line), ended
    reason = f"{plan.reason}; {evaluation.checked.message}"
    if ctx.git.commit_called(task.started_at_commit) is None:
        reason = f"{reason.rstrip('.')}; base commit is gone"
        return _failed(ctx, task, reason, ending=Ending.FAILED_FOR_GOOD)
    return interrupted.go_on(ctx, task, "resume", reason, stays=stays, left=left)


class Reclaimed(NamedTuple):
    """What came of one try, and the words for it.

    `queued`: its checked work waits for the worker that merges. `later`: unchanged, to be tried again.
    `lost`: another worker has it, nothing was touched.
    """

    how: Literal["handed back", "queued", "later", "given up", "lost"]
    message: str


class Reclaims:
    """The tries of one process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._tries = interrupted.Tries()

    def reclaim(self, held: Task) -> Reclaimed:
        """Try to hand back `held`, as it is in progress now, in the name of a worker that is dead."""
        try:
            return self._hand_back(held)
        except LeaseLostError as lost:
            return Reclaimed("lost", f"{held.id} has no worker any more: {lost}")

    def _hand_back(self, held: Task) -> Reclaimed:
        claim = held
        try:
            claim = take_from_dead_worker(self._ctx, held)
            line, ended = hand_back(self._ctx, claim)
            waits = ended is not None and ended.task.status == "in_progress"
            return Reclaimed("queued" if waits else "handed back", line)
        except (LeaseLostError, AwayError):
            raise
        except (HarnessError, OSError) as error:
            if isinstance(error, OSError) and errors.passes(error):
                raise
            if isinstance(error, BusyError) or not self._tries.spent(claim):
                return Reclaimed("later", f"{held.id} could not be handed back yet: {error}")
            return Reclaimed("given up", interrupted.give_up(self._ctx, claim, error).halt or "")

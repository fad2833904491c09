"""Finish what a killed process has begun, continue interrupted work, take it over, or give its task up.

A task whose attempt can be neither ended nor requeued is halted until the user has looked, so that others
need not wait for it. Its work is kept, and its work tree is not touched.

An attempt of another machine is taken over by what it has left in the remote: its files cannot be seen here.
If its commit is on the branch, the task is completed. Otherwise the work that it had pushed goes to the next
attempt, and no attempt is counted: the machine is to blame, not the work. A commit whose check had passed is
merged without an agent.
A commit may be on its way to the branch: then the turn is taken first, after which the remote refuses it.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path

from harness_lib import typed
from harness_lib.attempts import (
    check,
    merge_queue,
    outcome,
    remote,
    requeue,
    rescue_refs,
    rollback,
    snapshots,
    turn,
)
from harness_lib.core import ownership, trust
from harness_lib.core.context import Context
from harness_lib.errors import (
    ConfigError,
    EnvSetupError,
    HarnessError,
    HeldError,
)
from harness_lib.rules import arrows, attempts, recovery, transitions
from harness_lib.system.git import history, locks, trees, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.task import Interruption, Task
from harness_lib.text import sentence

# A line that tells what recovery did, and how the attempt ended if it did.
Recovered = tuple[str, "outcome.Ended | None"]
TRIES = 3
# Seconds to wait for the turn: whoever recovers has other things to do.
WAIT_SECONDS = 10.0


def log(ctx: Context, task: Task, action: str, reason: str) -> str:
    """Log what recovery does about `task`, and return it as a line for the caller."""
    with ctx.transaction("tasks") as tx:
        tx.log("RECOVERY", f'action="{action}" reason="{reason}"', ctx.session.number, task.id)
    return f"recovered {task.id}: {action} ({reason})"


def facts(ctx: Context, task: Task) -> recovery.Facts:
    """Answer the questions of the recovery matrix from git and the task's checkpoints."""
    git = ctx.git
    base = git.commit_called(task.started_at_commit)
    if base is None:
        return recovery.Facts(uncommitted=requeue.has_changes(ctx, task))
    commits = history.commits(git, f"{base}..HEAD")
    as_recorded, reflects = _against_checkpoint(ctx, task, base)
    return recovery.Facts(
        uncommitted=not as_recorded and requeue.has_changes(ctx, task),
        # An agent may commit under its own message, which names no task.
        task_commits=any(not as_recorded or commit.names(task.id) for commit in commits),
        checkpoints=bool(task.checkpoints),
        reflects=reflects,
        base_exists=True,
    )


def _against_checkpoint(ctx: Context, task: Task, base: str) -> tuple[bool, bool]:
    """Return whether the work tree equals the last checkpoint, and whether it has at least all its changes.

    A checkpoint without a tree, made under the legacy protocol, is no evidence.
    """
    tree = task.checkpoints[-1].tree if task.checkpoints else None
    if tree is None or not ctx.git.object_exists(tree):
        return False, False
    differs = trees.changed(ctx.git, tree, ctx.capture()).keys()
    return not differs, differs.isdisjoint(trees.changed(ctx.git, ctx.git.tree_of(base), tree))


def awaits_its_work(ctx: Context, task: Task) -> bool:
    """Return whether the attempt was interrupted before the earlier work that it continues was put back."""
    return task.kept is not None and ctx.git.ref(task.kept) is not None


def go_on(ctx: Context, task: Task, action: str, reason: str, *, stays: bool, left: str = "") -> Recovered:
    """Leave the work to the session, or to the next attempt; return a line, and how it ended if it did.

    `stays`: the session works in this work tree. `left`: the tree at the interruption, if a check ran since.
    The third interruption in a row without a new checkpoint or any change of the tree is a failed attempt.
    """
    if left:
        outcome.undo_check(ctx, task, left)
    interruption = recovery.interrupted(task, left or ctx.capture())
    if recovery.stands_still(interruption):
        why = rollback.standstill(interruption, reason)
        line = log(ctx, task, "roll back, mark failed", why)
        return line, rollback.roll_back(ctx, task, outcome.Verdict("SESSION_TIMEOUT", why))
    _record(ctx, task, interruption._replace(tree=ctx.capture()))
    if stays and _is_where_it_was(ctx, task):
        return log(ctx, task, action, reason), None
    line = log(ctx, task, "keep the work for the next attempt", reason)
    return line, requeue.interrupted(ctx, task, reason)


def put_back(ctx: Context, task: Task, *, stays: bool) -> Recovered:
    """Continue an attempt that was interrupted before the work that it continues was put back."""
    restored = requeue.apply(ctx, task) if stays else ""
    reason = "the work that it was to continue was not there yet"
    line, ended = go_on(ctx, task, "resume", reason, stays=stays)
    return "\n".join(filter(None, (line, restored))), ended


def _is_where_it_was(ctx: Context, task: Task) -> bool:
    """Return whether HEAD is on the attempt's branch, and that branch still contains its base."""
    base = task.started_at_commit
    if not task.gate or base is None:
        return True
    return ctx.git.branch() == rescue_refs.branch(ctx.git, task) and ctx.git.is_ancestor(base, "HEAD")


def _record(ctx: Context, task: Task, interruption: Interruption) -> None:
    with ctx.transaction("tasks") as tx:
        cut_off = transitions.interrupt(outcome.require_claim(tx, task), interruption)
        # The directory of the project may have been renamed.
        tx.replace(cut_off._replace(worktree=str(ctx.git.top)))


class Tries:
    """How often requeuing each task has failed."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def spent(self, task: Task) -> bool:
        """Count one more failed try; return whether it was the last."""
        self._counts[task.id] = self._counts.get(task.id, 0) + 1
        return self._counts[task.id] >= TRIES


def give_up(ctx: Context, task: Task, error: HarnessError | OSError) -> Task:
    """Make `task` pending and halted because of `error`, without counting an attempt, and return it.

    Raises LeaseLostError, and touches nothing, if the claim is no longer the one that `task` shows.
    """
    # First, because the work tree of a lost claim may belong to another worker by now.
    kept = _keep(ctx, outcome.require_claim(ctx.store.ask_now(), task))
    reason = f"{error.message if isinstance(error, HarnessError) else error}"
    with ctx.transaction("tasks") as tx:
        mine = transitions.uncommitted(outcome.require_claim(tx, task))
        if arrows.may("begin_rollback", mine):
            mine = transitions.release(mine, now=tx.now, message=reason)
        retry = typed.harness("retry", task.id)
        message = f"ENV_SETUP: the attempt could not be ended: {sentence(reason)} {kept} Then type: {retry}"
        ended = transitions.fail(transitions.halt(mine, attempts.Halt("ENV_SETUP", message)), now=tx.now)
        tx.replace(ended)
        tx.on_commit(partial(ownership.forget_claim, ctx, task))
        tx.log("WARN", f"given up after {TRIES} tries: {message}", ctx.session.number, task.id)
    return ended


def _keep(ctx: Context, task: Task) -> str:
    """Keep the content of the work tree of `task`, and return a sentence that says where."""
    if task.worktree is None:
        checked = task.intent.commit if task.intent else None
        if checked is None or not ctx.git.exists(checked):
            return ""
        ref = rescue_refs.keep_commit(ctx.git, task, checked, "-checked")
        return f"Its work is kept: {rescue_refs.show_command(ref)}"
    place = Path(task.worktree)
    try:
        worktree = worktrees.at(ctx.git, place)
        view = ctx.at(worktree or Git.open(place))
        if task.intent and task.intent.commit is not None:
            rescue_refs.keep_commit(view.git, task, task.intent.commit, "-checked")
        return f"Its work is kept: {rescue_refs.show_command(rescue_refs.rescue_only(view, task))}"
    except (EnvSetupError, HarnessError, OSError):
        # The content cannot be captured: keep the whole directory.
        aside = rescue_refs.whole(ctx, place, None)
        return f"Its work tree is kept in {aside}." if aside else ""


def resume(ctx: Context, task: Task) -> outcome.Ended:
    """Finish the git operation of a killed process, as the task's intent says.

    Raises RefusedError (the list may have come with a clone, and nobody has trusted it; or the user's merge
    or the like is under way), ConfigError (it says what we never write).
    """
    _require_ours(ctx, task)
    outcome.require_no_operation(ctx.git, task, "harness recover")
    git, intent = ctx.git, task.begun
    if intent.action == "rollback":
        if _is_as_it_was(ctx, task):
            return rollback.go_back(ctx, task, again=True)
        return _leave_as_it_is(ctx, task)
    if intent.action == "merge" or intent.ref is not None:
        # A `git gc --prune=now` of the user's ran when it was made; the work tree has its content.
        is_gone = intent.action == "merge" and not (ctx.shared or git.exists(intent.oid))
        why = "git has removed its commit"
        return requeue.interrupted(ctx, task, why) if is_gone else merge_queue.resume(ctx, task)
    if ctx.shared:
        return turn.resume_chat(ctx, task)
    with locks.hold(git):
        outcome.clear_dead_locks(git, intent)
        if git.head() == intent.commit or _may_be_carried_out(ctx, task):
            return outcome.carry_out(ctx, task)
    return _abandon_commit(ctx, task)


def _require_ours(ctx: Context, task: Task) -> None:
    """Raise RefusedError or ConfigError unless harness could have written the intent of `task`."""
    questions = ctx.ask()
    trust.require(ctx, questions)
    wrong = recovery.problem(task) or _wrong_base(ctx, task)
    if wrong is not None:
        place = questions.position(task.id)
        raise ConfigError(
            f"tasks[{place}].{wrong}: harness has not written that, so nothing of it is done.",
            f"If nothing is under way for {task.id}, take its `intent` out of {ctx.store.list_file} by hand, "
            "then type: harness start",
        )


def _wrong_base(ctx: Context, task: Task) -> str | None:
    """Return an error text if the intent's base is neither the attempt's base nor a descendant of it."""
    intent = task.begun
    base, began = intent.base, task.started_at_commit
    if intent.action != "rollback" and recovery.is_on_top(task):
        return None
    if base == began or (base and began and ctx.git.is_ancestor(began, base)):
        return None
    return "intent.base is not where the attempt began"


def _is_as_it_was(ctx: Context, task: Task) -> bool:
    """Return whether a rollback takes only commits off the branch that the attempt had made when it failed.

    Either nothing has moved since, or the present commit is rescued already: the rescue comes first.
    """
    git, intent = ctx.git, task.begun
    head = git.head()
    if head in (intent.head, intent.base):
        return True
    return bool(head and intent.rescue and git.ref(intent.rescue) and git.is_ancestor(head, intent.rescue))


def _leave_as_it_is(ctx: Context, task: Task) -> outcome.Ended:
    """Record the attempt as failed and rescue its work, but leave the branch, which somebody has moved."""
    rescue = rescue_refs.rescue_only(ctx, task)
    reason = (
        f"HEAD has moved since the rollback was interrupted; nothing was rolled back, a copy is in {rescue}."
    )
    verdict = outcome.Verdict("SESSION_TIMEOUT", reason)
    ended = rollback.fail_without_git(ctx, task, verdict)
    return ended._replace(rescue=rescue, warnings=(*ended.warnings, f"{task.id}: {reason}"))


def _may_be_carried_out(ctx: Context, task: Task) -> bool:
    """Return whether HEAD is still on the gate's branch, at the commit on which the new one was prepared."""
    git, intent = ctx.git, task.begun
    if intent.head is None or intent.commit is None or git.head() != intent.head:
        return False
    if git.branch() != rescue_refs.branch(git, task):
        return False
    return git.exists(intent.commit) and git.is_ancestor(intent.head, intent.commit)


def _abandon_commit(ctx: Context, task: Task) -> outcome.Ended:
    """Keep the prepared commit and record the attempt as failed, because HEAD has moved since."""
    git, intent = ctx.git, task.begun
    if intent.commit and git.is_ancestor(intent.commit, "HEAD"):
        return outcome.completed(ctx, task)
    if intent.commit and git.exists(intent.commit):
        rescue_refs.keep_commit(git, task, intent.commit, "-commit")
    task = outcome.drop_intent(ctx, task)
    verdict = outcome.Verdict("SESSION_TIMEOUT", "HEAD moved while the commit was interrupted.")
    return rollback.roll_back(ctx, task, verdict)


def take_over(ctx: Context, task: Task) -> Recovered:
    """End the attempt at `task`, which the caller has claimed; return a line, and how it ended.

    A remote that does not answer ends nothing: then the claim is given up, for another try.
    """
    there = remote.of(ctx, task)
    try:
        return _take_over(ctx, task, there)
    except (HeldError, EnvSetupError) as error:
        with ctx.transaction("tasks") as tx:
            mine = outcome.require_claim(tx, task)
            tx.replace(transitions.renew(mine, now=tx.now, lease_seconds=0))
        return f"{task.id} cannot be recovered yet: {error.message}", None


def _take_over(ctx: Context, task: Task, there: remote.There) -> Recovered:
    # Of work that still waits for its merge no push is under way; whoever begins one now says so in the list.
    is_moving = task.step == "commit"
    end = ctx.clock.monotonic() + WAIT_SECONDS

    def keep_claim() -> None:
        if ctx.clock.monotonic() > end:
            raise HeldError(f"Another machine merges into {there.shown} now.", "Try again later.")
        check.renew(ctx, task)

    with turn.taken(ctx, there, keep_claim) if is_moving else nullcontext() as mine:
        if mine is not None:
            mine.begin()
        left = snapshots.newest(there, task)
        commit = remote.found(there, task)
        if commit is not None and not ctx.merging.proposes:
            ended = _complete_there(ctx, task, there, commit)
            reason = f"{_whose(ctx, task)}; its commit {commit[:12]} is on {there.shown}"
            return log(ctx, task, "mark completed", reason), ended
        if commit is not None:
            # It waits to be proposed.
            left = snapshots.Left(commit, "ready")
        return _hand_back(ctx, task, there, left)


def _whose(ctx: Context, task: Task) -> str:
    """Return why the attempt at `task` goes on here."""
    where = task.machine or "another machine"
    if task.machine == ctx.machine and task.worktree is None:
        return f"the worker of {where} that merges has ended"
    return f"{where} does not answer"


def _complete_there(ctx: Context, task: Task, there: remote.There, commit: str) -> outcome.Ended:
    git = there.git
    base = git.parent(commit) or task.started_at_commit
    with ctx.transaction("tasks") as tx:
        current = transitions.uncommitted(outcome.require_claim(tx, task))
        current = transitions.begin_commit(
            current, now=tx.now, head=None, commit=commit, ref=task.target, base=base
        )
        tx.replace(current)
    ended = outcome.completed(ctx, current)
    snapshots.drop(there, task)
    return ended


def _hand_back(
    ctx: Context, task: Task, there: remote.There, left: snapshots.Left | None
) -> tuple[str, outcome.Ended]:
    """Give the task back with the work that is `left` of it; the third time in a row without any it fails."""
    why, rescue = _whose(ctx, task), None
    reason = f"{why}, and had pushed no work on it"
    if left:
        what = "its checked work" if left.kind == "ready" else "what it had done"
        reason = f"{why}; {what} goes into the next attempt"
        rescue = rescue_refs.keep_commit(there.git, task, left.commit)
    accepted = left is not None and left.kind == "ready"
    ended = rollback.keep_for_the_next(ctx, task, reason, rescue, accepted=accepted)
    return log(ctx, task, "hand back", reason), ended


def work_tree(ctx: Context, task: Task) -> Git | None:
    """Return the work tree that the attempt was made in; None if it is unknown, gone or another repository's.

    Never the caller's in its stead: what stands there is no attempt's work.
    """
    if task.worktree is None or (task.machine is not None and task.machine != ctx.machine):
        return None
    place = Path(task.worktree)
    if place.is_dir() and not ownership.is_copied_from(ctx, place):
        return worktrees.at(ctx.git, place)
    return ctx.git if _has_moved(ctx, task) else None


def _has_moved(ctx: Context, task: Task) -> bool:
    """Return whether the caller's work tree can only be the attempt's, which was renamed or copied."""
    if ctx.ask().concurrent or not task.gate:
        return False
    # No two work trees of a repository have the same branch.
    return task.gate.branch is not None and task.gate.branch == ctx.git.branch()

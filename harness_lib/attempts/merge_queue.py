"""Merge checked work into its branch: rebase it, check it there, and complete its task.

A queue, first come, first served: the first in line takes all that wait behind it, on other machines too,
puts their commits on top of what others have merged meanwhile, one on the other, runs each check once on the
resulting content, and moves the branch once. If a check fails, the first half is tried, and so on; before
a single task is blamed, a short check runs once more.
Work that conflicts, or passes only alone, goes back to an agent with both sides explained, twice for nothing.

Crash model: from `begin_merge` on the list names the checked commit, so whoever comes after a crash begins
again there; from `begin_commit` on it names the commit that is on the branch once that has moved: whoever
comes after a crash looks for it there, and merges it again if it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

from harness_lib.attempts import (
    check,
    committed,
    outcome,
    pending_merges,
    publish,
    recheck,
    remote,
    requeue,
    rescue_refs,
    snapshots,
    target_branch,
    turn,
)
from harness_lib.checks import Checked, check_of
from harness_lib.core import trust
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HeldError
from harness_lib.rules import transitions
from harness_lib.state.api import Questions
from harness_lib.system import flock
from harness_lib.system.git import advance, calls, clones, locks, status, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.task import Task

# As many other workers may merge between our look and our move; more failures have another cause.
TRIES = 50


def merge(ctx: Context, task: Task, oid: str) -> outcome.Ended:
    """Merge `oid`, the commit of an attempt's checked content, into the gate's target.

    If the run has a worker that merges, the task is handed over to it, and is still in progress.
    Raises LeaseLostError, CheckEditedError, HeldError (git is locked), EnvSetupError (the check cannot run on
    the merged tree).
    """
    git = ctx.git
    if worktrees.has_clone(git):
        task = task._replace(look_at=(*task.look_at, *rescue_refs.keep_own_files(ctx, task, oid)))
    with locks.hold(git):
        advance.require_unlocked(git)
        # First of all: a process that finds HEAD there would commit what the check left behind on top.
        with ctx.transaction("tasks") as tx:
            mine = outcome.as_checked(outcome.require_claim(tx, task, task.validation), task, oid)
            task = transitions.begin_merge(mine, now=tx.now, commit=oid)
            tx.replace(task)
    return _hand_over_or_merge(ctx, task, oid)


def _hand_over_or_merge(ctx: Context, task: Task, oid: str) -> outcome.Ended:
    is_kept = False
    if ctx.shared:
        # So that another machine can merge it if this one dies.
        is_kept = snapshots.keep(remote.of(ctx, task), task, oid, "ready").done
    said = _stand_on(ctx, task, oid)
    if is_kept and ctx.merging.by not in ("", ctx.owner.worker):
        # The worker of the run that merges gets the claim.
        with ctx.transaction("tasks") as tx:
            mine = outcome.require_claim(tx, task)
            mine = mine._replace(look_at=(*mine.look_at, *said))
            seconds = ctx.lease_seconds if tx.concurrent else None
            handed = transitions.hand_over(mine, worker=ctx.merging.by, now=tx.now, lease_seconds=seconds)
            tx.replace(handed)
        return outcome.Ended(handed, None)
    return merge_in_turn(ctx, task, said)


def queued(questions: Questions, worker: str) -> list[Task]:
    """Return the tasks whose checked work `worker` is to merge, the longest wait first."""
    tasks = [task for task in questions.in_progress() if task.claimed_by == worker and task.intent]
    return sorted(tasks, key=lambda task: task.begun.at)


def refresh(ctx: Context) -> str | None:
    """Let the branch of the run have all that other machines have merged; return its commit.

    None: no other machine merges. Raises HeldError.
    """
    if ctx.merging.mode != "turns":
        return None
    return remote.refresh(ctx)


def _stand_on(ctx: Context, task: Task, oid: str) -> list[str]:
    """Put the work tree at its checked commit if it is at the one before; return what to review.

    If HEAD is elsewhere, the files there are not this attempt's; the merge needs no work tree.
    """
    git = ctx.git
    with locks.hold(git):
        head = git.head()
        if head is None or (head != oid and head != git.parent(oid)):
            return []
        _detach(git)
        is_as_committed = advance.move_head_and_index(git, oid, head)
        status.quit_under_way(git)
    return [] if is_as_committed else outcome.undo_check(ctx, task, oid)


def merge_in_turn(ctx: Context, task: Task, said: Sequence[str] = ()) -> outcome.Ended:
    """Merge the commit that the task's intent names, also after a crash; add `said` to what to review."""
    if ctx.shared and task.step == "commit":
        # Nothing is moved for work that another machine has merged with its own, so others may have the turn.
        there = remote.of(ctx, task)
        with suppress(HeldError):
            there.follow(there.require())
        if _has_arrived(ctx, task):
            return _completed(ctx, task, said)
    keep = check.renewing(ctx, task)
    # Without its turn the result would be the same, after more checks.
    with (
        flock.turn(ctx.git.common_dir / publish.LINE, ctx.lease_seconds / check.RENEWALS_PER_LEASE, keep),
        _turn(ctx, task, keep) as mine,
    ):
        aside = False
        for _ in range(TRIES):
            mine.begin()
            task = _as_it_is(ctx, task)
            if task.step == "commit":
                # The worker before us in the line has merged it, too.
                return _completed(ctx, task, said)
            publish.take_in(ctx)
            try:
                return _merge_batch(ctx, task, said, mine, aside=aside)
            except target_branch.MovedError as moved:
                aside = aside or moved.blocked
    raise HeldError(
        f"{task.id} could not be merged: its branch moved {TRIES} times meanwhile.",
        "Try: harness recover",
    )


def _as_it_is(ctx: Context, task: Task) -> Task:
    """Return the task as it is now: still to be merged, or merged with others before our turn."""
    current = outcome.require_claim(ctx.store.ask_now(), task)
    intent = current.begun
    if intent.action == "merge" or _has_arrived(ctx, current):
        return current
    # The worker that merged it with others is dead, or has failed.
    return _begin_again(ctx, current)


def _has_arrived(ctx: Context, task: Task) -> bool:
    commit, target = task.begun.oid, _target(task)
    return any(ctx.git.is_ancestor(commit, ref) for ref in (target, target_branch.waiting(target)))


class _Here(NamedTuple):
    """What moves the branch as a `turn.Turn` does, on this machine alone."""

    ctx: Context
    keep_claim: Callable[[], object]

    def begin(self) -> None:
        """Do nothing: the branch is here."""

    def move(self, move: target_branch.Move, new: str) -> None:
        target_branch.carry_out(self.ctx, move, new)


_Turn = turn.Turn | _Here


def _turn(ctx: Context, task: Task, keep: Callable[[], object]) -> AbstractContextManager[_Turn]:
    if not ctx.shared:
        return nullcontext(_Here(ctx, keep))
    return turn.taken(ctx, remote.of(ctx, task), keep)


def _merge_batch(
    ctx: Context,
    task: Task,
    said: Sequence[str],
    mine: _Turn,
    *,
    aside: bool,
) -> outcome.Ended:
    """Merge the task and those that wait behind it; return how the task's attempt ended.

    Raises target_branch.MovedError.
    """
    if not trust.knows(ctx, task):
        return requeue.because_of_trust(ctx, task)
    move = target_branch.next_move(ctx, _target(task), aside=aside)
    tasks = pending_merges.waiting(ctx, task)
    while True:
        batch = pending_merges.stack(ctx, tasks, move.tip, mine.keep_claim)
        if batch.conflicts:
            oid = task.begun.oid
            return requeue.because_of_conflict(ctx, task, oid, move.tip, batch.conflicts)
        failed = _failed(ctx, batch, mine.keep_claim)
        if not failed:
            break
        if len(batch.members) > 1:
            tasks = batch.half()
        elif _passes_again(ctx, batch, failed):
            break
        else:
            return requeue.because_of_check(ctx, task, move.tip, failed)
    if batch.tip != move.tip:
        move = target_branch.unless_blocked(ctx, move)
    moving = pending_merges.begin(ctx, batch, move.ref)
    try:
        mine.move(move, batch.tip)
    except target_branch.MovedError:
        pending_merges.take_back(ctx, batch)
        raise
    return _completed(ctx, moving, said)


def _begin_again(ctx: Context, task: Task) -> Task:
    """Return the task with its intent set back from an impossible move to the merge of its commit."""
    commit, base = task.begun.oid, task.begun.base
    if ctx.shared and not ctx.git.exists(commit):
        # Another machine has put it on top of its own work, and died before that was pushed.
        left = snapshots.newest(remote.of(ctx, task), task)
        if not left or left.kind != "ready":
            raise HeldError(
                f"The checked work of {task.id} is not in the remote now.", "Try: harness recover"
            )
        commit, base = left.commit, None
    with ctx.transaction("tasks") as tx:
        current = transitions.uncommitted(outcome.require_claim(tx, task))
        again = transitions.begin_merge(current, now=tx.now, commit=commit, base=base)
        tx.replace(again)
    return again


def _completed(ctx: Context, task: Task, said: Sequence[str]) -> outcome.Ended:
    """Record the task as completed, as its work is on the branch; or propose the work to others."""
    if publish.must_wait(ctx, task):
        return publish.propose(ctx, task, said)
    ended = outcome.completed(ctx, task, said)
    _leave(ctx.git, task.begun.oid)
    if ctx.shared:
        snapshots.drop(remote.of(ctx, task), task)
    rescue_refs.drop_before(ctx.git, task)
    target = _target(task)
    waits = pending_merges.bring_over(ctx, target) or pending_merges.describe(ctx, target)
    refused = publish.push(ctx)
    return ended._replace(warnings=tuple(map(str, filter(None, (waits, refused)))))


def resume(ctx: Context, task: Task) -> outcome.Ended:
    """Finish the merge of a killed process."""
    intent, target = task.begun, _target(task)
    with locks.hold(ctx.git):
        outcome.clear_dead_locks(ctx.git, intent, (target, target_branch.waiting(target)))
    if intent.action == "merge":
        return _hand_over_or_merge(ctx, task, task.begun.oid)
    return merge_in_turn(ctx, task)


def _target(task: Task) -> str:
    assert task.target is not None, f"BUG: {task.id} is to be merged, and no branch is named."
    return task.target


def _failed(ctx: Context, batch: pending_merges.Batch, keep: Callable[[], object]) -> Checked | None:
    """Run each check of the batch once on the merged content; return the first that fails, or None.

    The work tree gets that content. A single task's own content has been checked already. `keep` is called
    before each check.
    """
    git, first = ctx.git, batch.members[0].task
    oid = first.begun.oid
    if len(batch.members) == 1 and git.tree_of(batch.tip) == git.tree_of(oid):
        return None
    _stand_at(ctx, first, oid, batch.tip)
    ctx.busy(f"checking {first.id} on top of what others have merged …")
    checks: dict[tuple[str | None, str | None], Task] = {}
    for member in batch.members:
        asked = check_of(member.task)
        checks.setdefault((asked.text, asked.cwd), member.task)
    for number, task in enumerate(checks.values()):
        keep()
        if number and worktrees.has_clone(git) and any(ctx.changes()):
            _stand_at(ctx, first, oid, batch.tip)
        checked = _check_merged(ctx, task, first)
        if not checked.passed:
            return checked
    for member in batch.members:
        if member.task.validation.hidden:
            keep()
            checked = committed.run_held_out(ctx, member.task, batch.tip, suffix="-merged", holder=first)
            if not checked.passed:
                return checked
    return None


def _passes_again(ctx: Context, batch: pending_merges.Batch, failed: Checked) -> bool:
    """Run a short check once more before a single task is blamed; if it passes, record that it is flaky."""
    (member,) = batch.members
    # Once per attempt, and never for a check that is known to be flaky.
    if member.task.outcome == "flaky" or not recheck.is_worth_repeating(failed):
        return False
    _stand_at(ctx, member.task, member.task.begun.oid, batch.tip)
    if not _check_merged(ctx, member.task, member.task, suffix="-merged-again").passed:
        return False
    with ctx.transaction("tasks") as tx:
        mine = outcome.require_claim(tx, member.task)
        look_at = (*mine.look_at, f"{mine.id} {recheck.FLAKY}")
        tx.replace(mine._replace(outcome="flaky", look_at=look_at))
    return True


def _check_merged(ctx: Context, task: Task, holder: Task, suffix: str = "-merged") -> Checked:
    """Run the check of `task`, and renew our claim of `holder` meanwhile."""
    check.require_check(ctx, ctx.ask(), task)
    try:
        # It has just passed on the work alone, so a file that is missing now was removed by the others.
        return check.run(ctx, task, suffix=suffix, holder=holder)
    except ConfigError as error:
        return Checked("TEST_FAIL", error.message, "", check.log_directory(ctx, task))


def _stand_at(ctx: Context, task: Task, oid: str, merged: str) -> None:
    """Put the content of `merged` into the work tree, whose own is in the commit `oid`.

    What a check has changed since is kept beside it.
    """
    git = ctx.git
    with locks.hold(git):
        status.quit_under_way(git)
        _detach(git)
        changes = ctx.changes()
        if changes.tracked or changes.untracked:
            left = ctx.capture()
            if left not in (git.tree_of(oid), git.tree_of(merged)):
                name = rescue_refs.attempt_ref(task, "-check")
                rescue_refs.keep(git, name, left, oid, f"left by the check of {task.id}")
        git.run("checkout", "--quiet", "--force", "--detach", merged)
        if worktrees.has_clone(git):
            # The branch has no new files of an earlier check or of a checkout that was killed. In a chat they
            # may be the user's. A repository in there stays: no ref would have its content.
            git.run("clean", "-d", "--force", "--quiet")
            clones.renew(git)


def _detach(git: Git) -> None:
    """Detach HEAD, so that no branch of the agent's is moved."""
    head = git.head()
    if git.branch() is not None and head is not None:
        git.run("update-ref", "--no-deref", "HEAD", head)


def _leave(git: Git, commit: str) -> None:
    """Put the work tree at the merged commit, so that nothing keeps the old commits."""
    try:
        with locks.hold(git):
            if git.head() != commit and not status.changes(git).tracked:
                worktrees.switch(git, commit)
    except (calls.GitError, HeldError):
        # The task is completed; the next user of this work tree resets it anyway.
        return

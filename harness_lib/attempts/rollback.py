"""Keep the work of a failed attempt, then restore the files of its base."""

from __future__ import annotations

from functools import partial

from harness_lib import typed
from harness_lib.attempts import outcome, rescue_refs, snapshots, target_branch
from harness_lib.core import lifecycle, ownership, quoting, trust
from harness_lib.core.context import Context
from harness_lib.errors import HeldError
from harness_lib.rules import arrows, attempts, recovery, transitions
from harness_lib.system.git import history, locks, restore, snapshot, trees
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import runner
from harness_lib.task import Handback, Intent, Interruption, Task
from harness_lib.text import counted, safe_name


def roll_back(ctx: Context, task: Task, verdict: outcome.Verdict) -> outcome.Ended:
    """Record that the attempt failed, save its work in a rescue ref, and go back to its base.

    Raises LeaseLostError, HeldError (another program has git locked), RefusedError (the user's merge or the
    like is under way) and CheckEditedError; then nothing was changed.
    """
    git = ctx.git
    with outcome.held(git, task):
        standing = git.commit_called(task.started_at_commit)
        base = standing or task.started_at_commit
        rescue, head = rescue_refs.free(git, rescue_refs.attempt_ref(task)), git.head()
        tip = rescue_refs.branch_tip(git, task) or head
        back_to = base if standing is None or tip is None else history.pushed(git, standing, tip)
        with ctx.transaction("tasks") as tx:
            mine = outcome.require_claim(tx, task, verdict.validation)
            task = transitions.begin_rollback(
                transitions.uncommitted(mine)._replace(started_at_commit=base),
                now=tx.now,
                category=verdict.category,
                message=verdict.message,
                rescue=rescue,
                head=head,
                ending=verdict.ending if standing else attempts.without_base(verdict.ending),
                base=back_to,
            )
            if verdict.halt:
                task = transitions.halt(task, verdict.halt)
            if verdict.handback:
                task = transitions.hand_back(
                    task, verdict.handback._replace(rescue=verdict.handback.rescue or rescue)
                )
            tx.replace(task)
    return go_back(ctx, task)


def require_trust(ctx: Context, task: Task) -> None:
    """Raise RefusedError if going back would move a branch as an untrusted list says."""
    if task.started_at_commit != ctx.git.head():
        trust.require(ctx, ctx.ask())


def go_back(ctx: Context, task: Task, *, again: bool = False) -> outcome.Ended:
    """Carry out the rollback that the task's intent names, and record it; `again`: one was killed."""
    git, intent = ctx.git, task.begun
    was_on = git.branch()
    with locks.hold(git):
        warnings = outcome.clear_dead_locks(git, intent) if again else []
        tree, rescue = _rescue(ctx, task, intent)
        # After a kill the branch may be back already.
        tip = intent.head if again else rescue_refs.branch_tip(git, task) or git.head()
        base = git.commit_called(intent.base)
        if base is not None:
            left = restore.go_back(
                git,
                base,
                branch=rescue_refs.branch(git, task),
                made=tree,
                before=rescue_refs.before(git, task),
                excluded_paths=ctx.excluded_paths,
            )
            if left:
                left += rescue_refs.changed_before(git, task, intent.rescue)
            warnings += left
            warnings += _taken_off(git, task, intent, tip)
            warnings += _switched(ctx, task, was_on)
            result = f"to {base[:12]}"
        else:
            gone = f"base commit {intent.base or '(none)'} is gone"
            result = f"not possible: {gone}; the work tree is left as it is"
            warnings.append(f"The base commit of {task.id} is gone, so nothing was rolled back.")
    warnings += _clean_up(ctx, task)
    warnings += _shared(ctx, task)
    with ctx.transaction("tasks") as tx:
        ended = transitions.fail(outcome.require_claim(tx, task), now=tx.now)
        tx.replace(ended)
        tx.on_commit(partial(ownership.forget_claim, ctx, task))
        kept = f", the work is kept in {rescue}" if rescue else ", there was no work to keep"
        if intent.outcome == "failed":
            category = intent.category or "TASK_EXEC"
            tx.log("ERROR", intent.message or "", ctx.session.number, task.id, category=category)
        tx.log("ROLLBACK", result + kept, ctx.session.number, task.id)
        for warning in warnings:
            tx.log("WARN", warning, ctx.session.number, task.id)
        stop = lifecycle.after_attempt(tx, ctx) if intent.outcome == "failed" else None
    rescue_refs.drop_before(git, task)
    return outcome.Ended(ended, stop, rescue, tuple(warnings), rolled_back=base is not None)


def _shared(ctx: Context, task: Task) -> list[str]:
    """Push what was kept of the attempt, so that other machines have it; return why not."""
    if not ctx.shared:
        return []
    answer = snapshots.share(ctx, task)
    return [] if answer.done else [f"What is kept of {task.id} is on this machine only: {answer.why}"]


def _taken_off(git: Git, task: Task, intent: Intent, tip: str | None) -> list[str]:
    """Return a sentence about commits that were taken off the branch: the user may have made some of them."""
    assert intent.base is not None
    if task.target is not None:
        # In a run nobody else commits in the work tree of an attempt, which is made anew for the next one.
        return []
    warnings = []
    if intent.base != task.started_at_commit:
        warnings.append(
            f"{task.id} went back to {intent.base[:12]} only: a remote has what came before that."
        )
    gone = history.since(git, intent.base, tip) if tip else []
    if gone:
        branch = target_branch.short(rescue_refs.branch(git, task) or "HEAD")
        count = f"{counted(len(gone), 'commit')} left {branch}"
        shown = quoting.named(gone)
        kept = rescue_refs.show_command(intent.rescue or task.id)
        warnings.append(
            f"{count}: {shown}. Kept: {kept}. Those that are the user's "
            f"come back one by one with git cherry-pick COMMIT, all of them with: "
            f"{_bring_back(git, intent, tip)}"
        )
    return warnings


def _switched(ctx: Context, task: Task, was_on: str | None) -> list[str]:
    """Return a sentence if the rollback has switched branches in the user's work tree."""
    now = ctx.git.branch()
    if now == was_on or ctx.target is not None:
        return []
    before, after = target_branch.short(was_on), target_branch.short(now)
    # An orphan branch without a commit is no more.
    back = f"; to go back: {typed.git('checkout', before)}" if was_on and ctx.git.ref(was_on) else ""
    return [f"HEAD was on {before} and is on {after} again, where {task.id} was claimed{back}."]


def _bring_back(git: Git, intent: Intent, tip: str | None) -> str:
    """Return the command that puts the commits up to `tip` back on the branch, from the rescue ref."""
    parents = git.lines("rev-parse", f"{intent.rescue}^@") if intent.rescue and git.ref(intent.rescue) else []
    kept = f"{intent.rescue}^{parents.index(tip) + 1}" if tip in parents else tip
    if git.lines("rev-list", "--min-parents=2", f"{intent.base}..{tip}"):
        return typed.git("merge", kept)
    assert intent.base is not None
    return typed.git("cherry-pick", f"{intent.base[:12]}..{kept}")


def _rescue(ctx: Context, task: Task, intent: Intent) -> tuple[str, str | None]:
    """Save the content of the work tree; return its tree, and the ref that keeps it if one is needed.

    Run again after a crash, the tree may be half rolled back: what the first run saved stays, and the rest
    goes beside it.
    """
    git = ctx.git
    base, before = git.commit_called(intent.base), rescue_refs.before(git, task)
    # With `base` and `before`, files that the attempt has made git ignore are included.
    tree = snapshot.capture(git, ctx.excluded_paths, base=base, before=before)
    head = git.head()
    assert intent.rescue is not None
    first = git.ref(intent.rescue)
    if base == head and tree == _as_it_began(git, base, before):
        return tree, intent.rescue if first else None
    ref = intent.rescue if first is None else rescue_refs.free(git, intent.rescue)
    parents = dict.fromkeys(oid for oid in (head, rescue_refs.branch_tip(git, task)) if oid)
    git.set_ref(ref, git.commit(tree, list(parents), f"harness: rescued work of {task.id}\n"))
    return tree, intent.rescue


def _as_it_began(git: Git, base: str | None, before: snapshot.Before | None) -> str | None:
    """Return the tree of the work tree at the claim, untracked files included that were kept then."""
    tree = git.tree_of(base) if base else None
    if tree and before and before.kept:
        return trees.edited(git, tree, before.kept)
    return tree


def _clean_up(ctx: Context, task: Task) -> list[str]:
    """Run `on_failure.cleanup`; a failure is a warning, never an error."""
    command = task.on_failure.cleanup
    if not command:
        return []
    if not (trust.is_trusted(ctx, ctx.ask()) and trust.knows(ctx, task)):
        return [f"The cleanup of {task.id} was not run: it has not been trusted here (harness trust)."]
    log = ctx.root.logs / safe_name(task.id) / f"{task.attempts}-cleanup.log"
    finished = runner.run(command, cwd=ctx.git.top, log=log, timeout=120.0, env=ctx.env, clock=ctx.clock)
    if finished.ok:
        return []
    how = "ran too long" if finished.timed_out else f"ended with {finished.returncode}"
    return [f"The cleanup of {task.id} {how}; its output is in {log}."]


def fail_without_git(
    ctx: Context,
    task: Task,
    verdict: outcome.Verdict,
    interruption: Interruption | None = None,
) -> outcome.Ended:
    """Record an attempt that left nothing to roll back, or whose files are gone or belong to another worker.

    `interruption`: the one that has ended it, if what is kept of its work is compared with the next.
    """
    # What was untracked before is no change of the attempt, but it may have changed or deleted that.
    warnings = rescue_refs.changed_before(ctx.git, task)
    with ctx.transaction("tasks") as tx:
        mine = outcome.require_claim(tx, task)
        if mine.step == "commit" != task.step:
            # It waited for its merge when the remote was asked, and is being pushed with the work of others.
            raise HeldError(f"{task.id} is being merged now.", "Try again later.")
        begun = transitions.uncommitted(mine)
        if interruption and arrows.may("interrupt", begun):
            begun = transitions.interrupt(begun, interruption)
        # A rollback that a killed process had begun is counted already.
        if arrows.may("begin_rollback", begun):
            begun = transitions.begin_rollback(
                begun,
                now=tx.now,
                category=verdict.category,
                message=verdict.message,
                ending=verdict.ending,
            )
        if verdict.handback:
            begun = transitions.hand_back(begun, verdict.handback)
        ended = transitions.fail(begun, now=tx.now)
        if ended.machine is not None:
            # The one that comes back late is told who has it.
            ended = ended._replace(machine=ctx.machine)
        tx.replace(ended)
        tx.on_commit(partial(ownership.forget_claim, ctx, task))
        is_counted = verdict.ending is not attempts.Ending.REQUEUED
        if is_counted:
            tx.log("ERROR", verdict.message, ctx.session.number, task.id, category=verdict.category)
        for warning in warnings:
            tx.log("WARN", warning, ctx.session.number, task.id)
        stop = lifecycle.after_attempt(tx, ctx) if is_counted else None
    rescue_refs.drop_before(ctx.git, task)
    return outcome.Ended(ended, stop, warnings=(*warnings, *_shared(ctx, begun)))


def keep_for_the_next(
    ctx: Context, task: Task, why: str, kept: str | None, *, accepted: bool = False
) -> outcome.Ended:
    """Give back `task`, whose files are out of reach, because of `why`; the ref `kept`, if any, has its work.

    The third time in a row without any more work the attempt has failed. `accepted`: its check has passed.
    """
    interruption = recovery.interrupted(task, ctx.git.tree_of(kept) if kept else "")
    if not task.intent and recovery.stands_still(interruption):
        verdict = outcome.Verdict("SESSION_TIMEOUT", standstill(interruption, why))
    else:
        rounds = task.handback.rounds if task.handback else 0
        handback = Handback(why, rounds, kept, task.started_at_commit, accepted) if kept else None
        verdict = outcome.requeued(why, handback)
    return fail_without_git(ctx, task, verdict, interruption)._replace(rescue=kept)


def standstill(interruption: Interruption, why: str) -> str:
    """Return why an attempt that was interrupted too often has failed; `why` it was interrupted now."""
    return f"interrupted {interruption.times} times in a row without progress; {why}"

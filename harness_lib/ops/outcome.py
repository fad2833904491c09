"""The end of an attempt: commit it, or rescue it and roll back (design section 6).

Crash model: an `intent` in the state says what is about to happen in git before it happens, and is removed
together with the outcome in one write.
Killed anywhere between, `settle` does the rest: every git step ends in the same place when it is run again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness_lib import timestamps
from harness_lib.errors import LeaseLostError
from harness_lib.ops import checking, marker, sessions, trusting
from harness_lib.ops.context import Context
from harness_lib.rules import leases, transitions
from harness_lib.state.store import Tx
from harness_lib.system import gitlocks, restore, runner, snapshot
from harness_lib.system.git import Git
from harness_lib.task import Category, Intent, Session, Task

RESCUE_REFS = "refs/harness/rescue/"
SUBJECT_LENGTH = 200
CLEANUP_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class Ended:
    """How an attempt ended: the task afterwards, why to stop if so, the rescue ref, and warnings."""

    task: Task
    stop: str | None
    rescue: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Why an attempt is rolled back and what that costs the task; `halt`: why nobody may try it again yet."""

    category: Category
    message: str
    counts: bool = True
    permanent: bool = False
    releases: bool = False
    halt: str | None = None


def require_claim(tx: Tx, task: Task) -> Task:
    """Return the task as it is now; LeaseLostError if the claim is no longer the one that `task` shows."""
    now = tx.state.find(task.id)
    if now is None or not leases.is_same(now, task):
        holder = f"{now.claimed_by} has it" if now and now.status == "in_progress" else "it was recovered"
        raise LeaseLostError(
            f"The lease of task {task.id} was lost: {holder}. Nothing was recorded.",
            "Set your changes aside (git stash --include-untracked), then type: harness claim",
        )
    return now


# -- success ----------------------------------------------------------------------------------------------


def commit(ctx: Context, session: Session, task: Task, tree: str, head: str) -> Ended:
    """Commit `tree`, the content the check was run on, on top of `head`, and record the task as completed.

    Raises RefusedError (HEAD moved), HeldError (git is locked), LeaseLostError; then nothing is recorded.
    """
    git = ctx.git
    with gitlocks.hold(git):
        restore.require_unlocked(git)
        oid = _commit_object(git, head, task, tree)
        with ctx.store.transaction() as tx:
            task = transitions.begin_commit(require_claim(tx, task), now=tx.now, head=head, commit=oid)
            tx.replace(task)
        return _publish(ctx, session, task)


def _commit_object(git: Git, head: str, task: Task, tree: str) -> str:
    wanted = snapshot.without(git, tree, _still_untracked(git, head, task))
    parents = [head, *git.merge_heads()]
    if len(parents) == 1 and wanted == git.tree_of(head):
        return head
    title = " ".join(task.title.split())
    return snapshot.commit(git, wanted, parents, f"[{task.id}] {title}"[:SUBJECT_LENGTH] + "\n")


def _still_untracked(git: Git, head: str, task: Task) -> list[str]:
    """Return what was untracked before the claim and has not been committed by the attempt itself."""
    if task.gate is None or task.gate.before is None:
        return []
    before = snapshot.read_untracked(git, task.gate.before)
    known = snapshot.entries(git, git.tree_of(head))
    return [path for path in (*before.protected, *before.unprotected) if path not in known]


def _publish(ctx: Context, session: Session, task: Task) -> Ended:
    """Carry out the commit that the task's intent names, and record it."""
    git, intent = ctx.git, _intent(task)
    assert intent.commit is not None
    assert intent.head is not None
    try:
        restore.publish(git, intent.commit, intent.head)
    except restore.HeadMovedError:
        with ctx.store.transaction() as tx:
            tx.replace(transitions.drop_intent(require_claim(tx, task)))
        raise
    git.quit_under_way()
    warnings = [*_moved_branch(git, task), *undo_check(ctx, task, intent.commit)]
    with ctx.store.transaction() as tx:
        done = transitions.complete(require_claim(tx, task), now=tx.now)
        tx.replace(done)
        tx.log("Completed", f"(commit {intent.commit[:12]})", session=session.number, task=task.id)
        stop = _count_attempt(tx, ctx, session)
    drop_before(git, task)
    return Ended(done, stop, warnings=tuple(warnings))


def _moved_branch(git: Git, task: Task) -> list[str]:
    here = git.branch()
    if task.gate is None or here == task.gate.branch:
        return []
    was, now = (ref.removeprefix("refs/heads/") if ref else "no branch" for ref in (task.gate.branch, here))
    return [f"{task.id} was claimed on {was}, and HEAD is on {now} now: its commit is there."]


def undo_check(ctx: Context, task: Task, commit_oid: str) -> list[str]:
    """Put tracked files back to `commit_oid` where the check changed them; return what to warn about."""
    git = ctx.git
    changed = git.changes(ctx.keep_out).tracked
    if not changed:
        return []
    with gitlocks.hold(git):
        # It may have been a person who edited these files while the check ran: keep a copy of them first.
        ref = free_ref(git, task, suffix="-check")
        left = snapshot.capture(git, ctx.keep_out)
        git.set_ref(ref, snapshot.commit(git, left, [commit_oid], f"harness: after the check of {task.id}\n"))
        undone = restore.undo_tracked(git, commit_oid, ctx.keep_out)
    return [
        f"{len(undone)} tracked file(s) changed while the check ran; put back, the change is kept in {ref}."
    ]


# -- failure ----------------------------------------------------------------------------------------------


def roll_back(ctx: Context, session: Session, task: Task, verdict: Verdict) -> Ended:
    """Record that the attempt failed, save what it made in a rescue ref, and go back to its base.

    Raises LeaseLostError, and HeldError (another program has git locked); then nothing was changed.
    """
    git = ctx.git
    with gitlocks.hold(git):
        restore.require_unlocked(git)
    base_gone = task.started_at_commit is None or not git.exists(task.started_at_commit)
    rescue, head = free_ref(git, task), git.head()
    with ctx.store.transaction() as tx:
        task = transitions.begin_rollback(
            require_claim(tx, task),
            now=tx.now,
            category=verdict.category,
            message=verdict.message,
            rescue=rescue,
            head=head,
            counts=verdict.counts,
            permanent=verdict.permanent or (base_gone and not verdict.releases),
            outcome="pending" if verdict.releases else "failed",
        )
        if verdict.halt:
            task = transitions.halt(task, verdict.halt)
        tx.replace(task)
    return _go_back(ctx, session, task)


def _go_back(ctx: Context, session: Session, task: Task, *, again: bool = False) -> Ended:
    """Carry out the rollback that the task's intent names, and record it; `again` after one was killed."""
    git, intent = ctx.git, _intent(task)
    with gitlocks.hold(git):
        warnings = _clear_dead_locks(git, intent) if again else []
        made, rescue = _rescue(ctx, task, intent)
        if intent.base is not None and git.exists(intent.base):
            warnings += restore.go_back(
                git,
                intent.base,
                branch=_branch(git, task),
                made=made,
                before=_before(git, task),
                keep_out=ctx.keep_out,
            )
            told = f"to {intent.base[:12]}"
        else:
            told = (
                f"not possible: base commit {intent.base or '(none)'} is gone; the work tree is left as it is"
            )
            warnings.append(f"The base commit of {task.id} is gone, so nothing was rolled back.")
    warnings += _clean_up(ctx, task)
    with ctx.store.transaction() as tx:
        ended = transitions.fail(require_claim(tx, task), now=tx.now)
        tx.replace(ended)
        kept = f", the work is kept in {rescue}" if rescue else ", there was no work to keep"
        if intent.outcome == "failed":
            category = intent.category or "TASK_EXEC"
            tx.log("ERROR", intent.message or "", session=session.number, task=task.id, category=category)
        tx.log("ROLLBACK", told + kept, session=session.number, task=task.id)
        for warning in warnings:
            tx.log("WARN", warning, session=session.number, task=task.id)
        stop = _count_attempt(tx, ctx, session) if intent.outcome == "failed" else None
    drop_before(git, task)
    return Ended(ended, stop, rescue, tuple(warnings))


def _rescue(ctx: Context, task: Task, intent: Intent) -> tuple[str, str | None]:
    """Save everything that stands in the work tree; return its tree, and the ref that keeps it if one must.

    Run again after a crash, the tree may be half rolled back: what the first run saved stays, and the rest
    goes beside it.
    """
    git = ctx.git
    base = intent.base if intent.base and git.exists(intent.base) else None
    # With base and before, also what the attempt has hidden from git by ignoring it.
    made = snapshot.capture(git, ctx.keep_out, base=base, before=_before(git, task))
    head = git.head()
    assert intent.rescue is not None
    first = git.ref(intent.rescue)
    base_tree = git.tree_of(base) if base else None
    if made == base_tree and head == intent.base:
        return made, intent.rescue if first else None
    ref = intent.rescue if first is None else _free(git, intent.rescue)
    parents = dict.fromkeys(oid for oid in (head, _branch_tip(git, task)) if oid)
    message = f"harness: rescued work of {task.id}, attempt {task.attempts}\n"
    git.set_ref(ref, snapshot.commit(git, made, list(parents), message))
    return made, intent.rescue


def _branch(git: Git, task: Task) -> str | None:
    """Return the ref that HEAD stood for at the claim; a claim made by the prose did not record it."""
    return task.gate.branch if task.gate else git.branch()


def _branch_tip(git: Git, task: Task) -> str | None:
    branch = _branch(git, task)
    return git.ref(branch) if branch else None


def _before(git: Git, task: Task) -> snapshot.Before | None:
    before = task.gate.before if task.gate else None
    return snapshot.read_untracked(git, before) if before else None


def _clear_dead_locks(git: Git, intent: Intent) -> list[str]:
    since = timestamps.parse(intent.at).timestamp()
    removed = restore.remove_dead_locks(git, since, [intent.rescue] if intent.rescue else [])
    return [f"Removed {path.name}, which a killed git of ours had left behind." for path in removed]


def _clean_up(ctx: Context, task: Task) -> list[str]:
    """Run `on_failure.cleanup`; that it fails is worth a warning, never an error."""
    command = task.on_failure.cleanup
    if not command:
        return []
    if not trusting.is_trusted(ctx, ctx.store.read().state):
        return [f"The cleanup of {task.id} was not run: this list has not been trusted (harness trust)."]
    log = ctx.root.logs / checking.safe_name(task.id) / f"{task.attempts}-cleanup.log"
    finished = runner.run(
        command, cwd=ctx.git.top, log=log, timeout=CLEANUP_TIMEOUT_SECONDS, env=ctx.env, clock=ctx.clock
    )
    if finished.ok:
        return []
    how = "ran too long" if finished.timed_out else f"ended with {finished.returncode}"
    return [f"The cleanup of {task.id} {how}; its output is in {log}."]


def fail_without_git(ctx: Context, session: Session, task: Task, verdict: Verdict) -> Ended:
    """Record a failed attempt that left nothing to roll back, or whose files are not ours to touch."""
    with ctx.store.transaction() as tx:
        mine = require_claim(tx, task)
        if transitions.may("drop_intent", mine):
            mine = transitions.drop_intent(mine)
        # A rollback that a killed process had begun was counted when it began.
        begun = mine if mine.intent else _begin_without_git(tx, mine, verdict)
        ended = transitions.fail(begun, now=tx.now)
        tx.replace(ended)
        tx.log("ERROR", verdict.message, session=session.number, task=task.id, category=verdict.category)
        stop = _count_attempt(tx, ctx, session)
    drop_before(ctx.git, task)
    return Ended(ended, stop)


def _begin_without_git(tx: Tx, task: Task, verdict: Verdict) -> Task:
    return transitions.begin_rollback(
        task,
        now=tx.now,
        category=verdict.category,
        message=verdict.message,
        rescue=None,
        head=None,
        counts=verdict.counts,
        permanent=verdict.permanent,
        outcome="failed",
    )


def rescue_only(ctx: Context, task: Task) -> str:
    """Save everything that stands in the work tree, touch nothing there, and return the ref."""
    git = ctx.git
    with gitlocks.hold(git):
        made = snapshot.capture(git, ctx.keep_out)
        ref = free_ref(git, task)
        head = git.head()
        message = f"harness: rescued work of {task.id}\n"
        git.set_ref(ref, snapshot.commit(git, made, [head] if head else [], message))
    return ref


# -- shared -----------------------------------------------------------------------------------------------


def settle(ctx: Context, session: Session, task: Task) -> Ended:
    """Finish what a killed process had under way, as the task's intent says."""
    git, intent = ctx.git, _intent(task)
    if intent.action == "rollback":
        return _go_back(ctx, session, task, again=True)
    with gitlocks.hold(git):
        _clear_dead_locks(git, intent)
        if git.head() == intent.commit or _may_publish(git, intent):
            return _publish(ctx, session, task)
    return _abandon_commit(ctx, session, task)


def _may_publish(git: Git, intent: Intent) -> bool:
    return git.head() == intent.head and intent.commit is not None and git.exists(intent.commit)


def _abandon_commit(ctx: Context, session: Session, task: Task) -> Ended:
    """HEAD has moved since the commit was prepared: keep that commit, and take the attempt as failed."""
    git, intent = ctx.git, _intent(task)
    if intent.commit and git.is_ancestor(intent.commit, "HEAD"):
        with ctx.store.transaction() as tx:
            done = transitions.complete(require_claim(tx, task), now=tx.now)
            tx.replace(done)
            tx.log("Completed", f"(commit {intent.commit[:12]})", session=session.number, task=task.id)
            return Ended(done, _count_attempt(tx, ctx, session))
    if intent.commit and git.exists(intent.commit):
        git.set_ref(free_ref(git, task, suffix="-commit"), intent.commit)
    with ctx.store.transaction() as tx:
        task = transitions.drop_intent(require_claim(tx, task))
        tx.replace(task)
    verdict = Verdict("SESSION_TIMEOUT", "HEAD moved while the commit was interrupted.")
    return roll_back(ctx, session, task, verdict)


def _intent(task: Task) -> Intent:
    assert task.intent is not None, f"BUG: task {task.id} has no intent."
    return task.intent


def free_ref(git: Git, task: Task, suffix: str = "") -> str:
    """Return an unused rescue ref for the attempt under way, which has not been counted yet."""
    return _free(git, f"{RESCUE_REFS}{checking.safe_name(task.id)}/{task.attempts + 1}{suffix}")


def _free(git: Git, name: str) -> str:
    """Return `name`, or the first `name.2`, `name.3`, … that is unused: `retry` counts anew, refs do not."""
    taken = {ref for ref, _oid in git.refs(name.rpartition("/")[0] + "/")}
    candidates = (name if n == 1 else f"{name}.{n}" for n in range(1, len(taken) + 2))
    return next(ref for ref in candidates if ref not in taken)


def drop_before(git: Git, task: Task) -> None:
    """Let go of the copies of what was untracked before: the attempt has ended, the files stand."""
    if task.gate and task.gate.before:
        with gitlocks.hold(git):
            # The outcome is recorded: that a copy cannot go now is not its failure, and tidying tries again.
            git.run("update-ref", "-d", f"refs/harness/before/{task.gate.before}", check=False)


def _count_attempt(tx: Tx, ctx: Context, session: Session) -> str | None:
    current = next((s for s in tx.state.sessions or () if s.number == session.number), session)
    stop = sessions.after_attempt(tx, sessions.attempt_finished(tx, replace(current, halt=None)))
    marker.lower_when_finished(tx, ctx.root)
    return stop

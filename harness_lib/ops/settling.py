"""Finishing what a killed process had under way, as the intent in its task says (design section 6)."""

from __future__ import annotations

from harness_lib.ops import committing, keeping, landing, outcome, rolling_back
from harness_lib.ops.context import Context
from harness_lib.rules import transitions
from harness_lib.system import gitlocks
from harness_lib.system.git import Git
from harness_lib.task import Intent, Session, Task


def settle(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """Finish what a killed process had under way, as the task's intent says."""
    git, intent = ctx.git, outcome.intent_of(task)
    if intent.action == "rollback":
        return rolling_back.go_back(ctx, session, task, again=True)
    if intent.action == "merge" or intent.ref is not None:
        return landing.settle(ctx, session, task)
    with gitlocks.hold(git):
        outcome.clear_dead_locks(git, intent)
        if git.head() == intent.commit or _may_publish(git, intent):
            return committing.publish(ctx, session, task)
    return _abandon_commit(ctx, session, task)


def _may_publish(git: Git, intent: Intent) -> bool:
    return git.head() == intent.head and intent.commit is not None and git.exists(intent.commit)


def _abandon_commit(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """HEAD has moved since the commit was prepared: keep that commit, and take the attempt as failed."""
    git, intent = ctx.git, outcome.intent_of(task)
    if intent.commit and git.is_ancestor(intent.commit, "HEAD"):
        with ctx.store.transaction() as tx:
            done = transitions.complete(outcome.require_claim(tx, task), now=tx.now)
            tx.replace(done)
            tx.log("Completed", f"(commit {intent.commit[:12]})", session=session.number, task=task.id)
            return outcome.Ended(done, outcome.count_attempt(tx, ctx, session))
    if intent.commit and git.exists(intent.commit):
        git.set_ref(keeping.free_ref(git, task, suffix="-commit"), intent.commit)
    with ctx.store.transaction() as tx:
        task = transitions.drop_intent(outcome.require_claim(tx, task))
        tx.replace(task)
    verdict = outcome.Verdict("SESSION_TIMEOUT", "HEAD moved while the commit was interrupted.")
    return rolling_back.roll_back(ctx, session, task, verdict)

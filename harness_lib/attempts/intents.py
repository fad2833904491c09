"""Finish the git operation of a killed process, as the intent in its task says."""

from __future__ import annotations

from harness_lib.attempts import commit, merge_queue, outcome, rescue_refs, rollback, under_way
from harness_lib.core import trust
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError
from harness_lib.rules import recovery, transitions
from harness_lib.system.git import locks
from harness_lib.task import Session, Task


def resume(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """Finish the git operation of a killed process, as the task's intent says.

    Raises RefusedError (the list may have come with a clone, and nobody has trusted it; or the user's merge
    or the like is under way), ConfigError (it says what we never write).
    """
    require_ours(ctx, task)
    under_way.require_none_of_user(ctx.git, task, "harness recover")
    git, intent = ctx.git, outcome.intent_of(task)
    if intent.action == "rollback":
        if _is_as_it_was(ctx, task):
            return rollback.go_back(ctx, session, task, again=True)
        return _leave_as_it_is(ctx, session, task)
    if intent.action == "merge" or intent.ref is not None:
        return merge_queue.resume(ctx, session, task)
    with locks.hold(git):
        outcome.clear_dead_locks(git, intent)
        if git.head() == intent.commit or _may_be_carried_out(ctx, task):
            return commit.carry_out(ctx, session, task)
    return _abandon_commit(ctx, session, task)


def require_ours(ctx: Context, task: Task) -> None:
    """Raise RefusedError or ConfigError unless harness could have written the intent of `task`."""
    questions = ctx.store.ask()
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
    intent = outcome.intent_of(task)
    base, began = intent.base, task.started_at_commit
    if intent.action != "rollback" and recovery.is_for_a_branch(task):
        return None
    if base == began or (base and began and ctx.git.is_ancestor(began, base)):
        return None
    return "intent.base is not where the attempt began"


def _is_as_it_was(ctx: Context, task: Task) -> bool:
    """Return whether a rollback takes only commits off the branch that the attempt had made when it failed.

    Either nothing has moved since, or the present commit is rescued already: the rescue comes first.
    """
    git, intent = ctx.git, outcome.intent_of(task)
    head = git.head()
    if head in (intent.head, intent.base):
        return True
    return bool(head and intent.rescue and git.ref(intent.rescue) and git.is_ancestor(head, intent.rescue))


def _leave_as_it_is(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """Record the attempt as failed and rescue its work, but leave the branch, which somebody has moved."""
    rescue = rescue_refs.rescue_only(ctx, task)
    reason = (
        f"HEAD has moved since the rollback was interrupted; nothing was rolled back, a copy is in {rescue}."
    )
    verdict = outcome.Verdict("SESSION_TIMEOUT", reason)
    ended = rollback.fail_without_git(ctx, session, task, verdict)
    return ended._replace(rescue=rescue, warnings=(*ended.warnings, f"{task.id}: {reason}"))


def _may_be_carried_out(ctx: Context, task: Task) -> bool:
    """Return whether HEAD is still on the gate's branch, at the commit on which the new one was prepared."""
    git, intent = ctx.git, outcome.intent_of(task)
    if intent.head is None or intent.commit is None or git.head() != intent.head:
        return False
    if task.gate is not None and git.branch() != task.gate.branch:
        return False
    return git.exists(intent.commit) and git.is_ancestor(intent.head, intent.commit)


def _abandon_commit(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """Keep the prepared commit and record the attempt as failed, because HEAD has moved since."""
    git, intent = ctx.git, outcome.intent_of(task)
    if intent.commit and git.is_ancestor(intent.commit, "HEAD"):
        return outcome.completed(ctx, session, task)
    if intent.commit and git.exists(intent.commit):
        git.set_ref(rescue_refs.free_ref(git, task, suffix="-commit"), intent.commit)
    with ctx.store.transaction() as tx:
        task = transitions.drop_intent(outcome.require_claim(tx, task))
        tx.replace(task)
    verdict = outcome.Verdict("SESSION_TIMEOUT", "HEAD moved while the commit was interrupted.")
    return rollback.roll_back(ctx, session, task, verdict)

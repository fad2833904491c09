"""Commit, merge, hold or requeue work whose check has passed, as its second check and content say."""

from __future__ import annotations

from functools import partial

from harness_lib import typed
from harness_lib.attempts import (
    check,
    commit,
    committed,
    contents,
    evaluate,
    for_user,
    merge_queue,
    outcome,
    requeue,
    second_check,
)
from harness_lib.attempts.evaluate import Evaluation
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.rules import input_files, transitions
from harness_lib.system.git import repository
from harness_lib.task import SentBack, Session, Task


def complete(
    ctx: Context,
    session: Session,
    task: Task,
    evaluation: Evaluation,
    known: check.Known | None = None,
) -> outcome.Ended:
    """Commit or merge the content that has passed its check, or requeue it; record the outcome.

    Work that the user must see first is held. `known` has the results of earlier checks, by content.
    Raises what `commit.commit` and `merge_queue.merge` raise.
    """
    if evaluation.against:
        return requeue.because_of_content(ctx, session, task, evaluation.against)
    known = {} if known is None else known
    oid = commit.commit_object(ctx, evaluation.head, task, evaluation.tree)
    # Without what was untracked before the attempt: that is not its work.
    tree = ctx.git.tree_of(oid)
    verdict = second_check.run(ctx, task, tree, partial(committed.beside, ctx), known)
    if verdict.objections and is_guarded(task):
        return _object(ctx, session, task, oid, verdict)
    if verdict.vacuous and is_guarded(task) and not task.accepted and "vacuous" not in task.sent_back:
        return _send_back(ctx, session, task, second_check.vacuous(verdict), "vacuous")
    brought = contents.of(ctx, task, evaluation.head, oid)
    if brought.secrets:
        why = for_user.secrets(task, brought.secrets)
        return for_user.hold(ctx, session, task, oid, why, brought.secrets)
    if ctx.env.get(for_user.REVIEW) and brought.files and not for_user.is_accepted(task):
        return for_user.hold(ctx, session, task, oid, for_user.review(task), ())
    sentences = [*look_at(task, evaluation, verdict, brought), *_by_nobody(ctx, task, oid)]
    if task.gate is not None and task.gate.target is not None:
        ended = merge_queue.merge(ctx, session, task, oid, sentences)
    else:
        ended = commit.commit(ctx, session, task, oid, evaluation.head, sentences)
    return ended._replace(files=brought.files)


def is_guarded(task: Task) -> bool:
    """Return whether work that passes only by changing its check inputs is sent back, not completed."""
    return for_user.is_merged(task) or input_files.AUTO in task.validation.protect


def _object(
    ctx: Context, session: Session, task: Task, oid: str, verdict: second_check.Verdict
) -> outcome.Ended:
    """Send the work back to its agent the first time, and ask the user the second time."""
    if "judges" in task.sent_back:
        return for_user.hold(
            ctx, session, task, oid, for_user.inputs_changed(task, verdict.files), verdict.files
        )
    return _send_back(ctx, session, task, second_check.explanation(verdict, task), "judges")


def _send_back(ctx: Context, session: Session, task: Task, reason: str, cause: SentBack) -> outcome.Ended:
    """Send work that has passed its check back to an agent; no attempt is counted."""
    if for_user.is_merged(task):
        return requeue.because_of_second_check(ctx, session, task, reason, cause)
    with ctx.store.transaction() as tx:
        current = transitions.send_back(outcome.require_claim(tx, task), cause)
        tx.replace(current)
        tx.log("WARN", reason, session=session.number, task=task.id)
    return outcome.Ended(current, None, warnings=(reason,))


def _by_nobody(ctx: Context, task: Task, oid: str) -> list[str]:
    """Return a sentence if git did not know who commits `oid`; once for a list."""
    if oid not in repository.by_nobody:
        return []
    known = (sentence for each in ctx.store.ask().search("completed") for sentence in each.look_at)
    if any(repository.NOBODY in sentence for sentence in known):
        return []
    name, email = (
        typed.git("config", "--global", f"user.{key}", rest=key.upper()) for key in ("name", "email")
    )
    return [f"{task.id} was committed by {repository.NOBODY}, as git does not know you: {name} && {email}"]


def look_at(
    task: Task, evaluation: Evaluation, verdict: second_check.Verdict, brought: contents.Contents
) -> list[str]:
    """Return what the user should review in work that has passed its check, a sentence each.

    Add such a sentence here, and nowhere else; it names the task and ends without a full stop.
    `outcome.completed` puts the command behind it that shows the work, such as `(git show 5d71f5b00000)`, and
    stores it with the task (`look_at`); `finish`, the end of a run, `status` and `show` print it.
    """
    sentences = [*verdict.look_at, *evaluation.said]
    if verdict.objections:
        names = quoting.named(verdict.files, quoting.TOUCHED, quoting.PATH_LENGTH)
        sentences.append(f"passes only with its own changes to files that its check depends on: {names}")
    if verdict.vacuous:
        names = quoting.named(verdict.vacuous, quoting.TOUCHED, quoting.PATH_LENGTH)
        sentences.append(f"adds tests that pass without its work: {names}")
    if evaluation.settings:
        names = ", ".join(evaluation.settings)
        sentences.append(f"changed git's settings for what is committed of a file: {names}")
    return [f"{task.id} {each}" for each in sentences] + [f"{task.id}: {each}" for each in brought.look_at]


def finish(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """Put the kept work on top of what was merged meanwhile, run the check there, and merge it.

    What stands against it hands the work back to an agent, at no cost.
    Raises what `evaluate.evaluate` and `complete.complete` raise.
    """
    requeue.apply(ctx, task)
    evaluation = evaluate.evaluate(ctx, ctx.store.ask(), task)
    if not evaluation.checked.passed:
        return requeue.because_of_check(ctx, session, task, evaluation.head, evaluation.checked)
    return complete(ctx, session, task, evaluation)

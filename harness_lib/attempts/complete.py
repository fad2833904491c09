"""Commit, merge, hold or hand back work whose check has passed, as its gate and its content say."""

from __future__ import annotations

from harness_lib.attempts import commit, contents, for_person, merge_queue, outcome, requeue
from harness_lib.attempts.evaluate import Evaluation
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.task import Session, Task


def complete(ctx: Context, session: Session, task: Task, evaluation: Evaluation) -> outcome.Ended:
    """Commit or merge the content that has passed its check, or hand it back; record what came of it.

    What a person must see first is held for one.
    Raises what `commit.commit` and `merge_queue.merge` raise.
    """
    if evaluation.against:
        return requeue.because_of_content(ctx, session, task, evaluation.against)
    oid = commit.commit_object(ctx, evaluation.head, task, evaluation.tree)
    brought = contents.of(ctx, task, evaluation.head, oid)
    if brought.secrets:
        return for_person.hold(ctx, session, task, oid, brought.secrets)
    sentences = look_at(task, evaluation, brought)
    if task.gate is not None and task.gate.target is not None:
        ended = merge_queue.merge(ctx, session, task, oid, sentences)
    else:
        ended = commit.commit(ctx, session, task, oid, evaluation.head, sentences)
    return ended._replace(files=brought.files)


def look_at(task: Task, evaluation: Evaluation, brought: contents.Contents) -> list[str]:
    """Return what a person should look at in work that has passed its check, a sentence each.

    Add such a sentence here, and nowhere else; it names the task and ends without a full stop.
    `outcome.completed` puts the command behind it that shows the work, such as `(git show 5d71f5b00000)`, and
    stores it with the task (`look_at`); `finish`, the end of a run, `status` and `show` print it.
    """
    sentences = [quoting.touched(evaluation.touched)] if evaluation.touched else []
    if evaluation.settings:
        names = ", ".join(evaluation.settings)
        sentences.append(f"changed git's settings for what is committed of a file: {names}")
    return [f"{task.id} {each}" for each in sentences] + [f"{task.id}: {each}" for each in brought.look_at]

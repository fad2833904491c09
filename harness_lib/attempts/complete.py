"""Commit, merge or hand back work whose check has passed, as its gate says."""

from __future__ import annotations

from harness_lib.attempts import commit, merge_queue, outcome, requeue
from harness_lib.attempts.evaluate import Evaluation
from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.task import Session, Task


def complete(ctx: Context, session: Session, task: Task, evaluation: Evaluation) -> outcome.Ended:
    """Commit or merge the content that has passed its check, or hand it back; record what came of it.

    Raises what `commit.commit` and `merge_queue.merge` raise.
    """
    if evaluation.against:
        return requeue.because_of_content(ctx, session, task, evaluation.against)
    merges = task.gate is not None and task.gate.target is not None
    deliver = merge_queue.merge if merges else commit.commit
    return deliver(ctx, session, task, evaluation.tree, evaluation.head, look_at(task, evaluation))


def look_at(task: Task, evaluation: Evaluation) -> list[str]:
    """Return what a person should look at in work that has passed its check, a sentence each.

    Add such a sentence here, and nowhere else; it names the task and ends without a full stop.
    `outcome.completed` puts the command behind it that shows the work, such as `(git show 5d71f5b00000)`, and
    stores it with the task (`look_at`); `finish`, the end of a run, `status` and `show` print it.
    """
    return [f"{task.id} {quoting.touched(evaluation.touched)}"] if evaluation.touched else []

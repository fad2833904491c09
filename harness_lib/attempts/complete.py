"""Commit, merge or hand back work whose check has passed, as its gate says."""

from __future__ import annotations

from harness_lib.attempts import commit, merge_queue, outcome, requeue
from harness_lib.attempts.evaluate import Evaluation
from harness_lib.core.context import Context
from harness_lib.task import Session, Task


def complete(ctx: Context, session: Session, task: Task, evaluation: Evaluation) -> outcome.Ended:
    """Commit or merge the content that has passed its check, or hand it back; record what came of it.

    Raises what `commit.commit` and `merge_queue.merge` raise.
    """
    if evaluation.against:
        return requeue.because_of_content(ctx, session, task, evaluation.against)
    if task.gate is not None and task.gate.target is not None:
        return merge_queue.merge(ctx, session, task, evaluation.tree, evaluation.head)
    return commit.commit(ctx, session, task, evaluation.tree, evaluation.head)

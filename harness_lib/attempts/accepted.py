"""Complete a claimed task from the work that a person has accepted; no agent works on it."""

from __future__ import annotations

from harness_lib.attempts import complete, evaluate, outcome, requeue
from harness_lib.core.context import Context
from harness_lib.task import Session, Task


def finish(ctx: Context, session: Session, task: Task) -> outcome.Ended:
    """Put the kept work on top of what was merged meanwhile, run the check there, and merge it.

    What stands against it hands the work back to an agent, at no cost.
    Raises what `evaluate.judge` and `complete.complete` raise.
    """
    requeue.apply(ctx, task)
    evaluation = evaluate.judge(ctx, ctx.store.ask(), task)
    if not evaluation.checked.passed:
        return requeue.because_of_check(ctx, session, task, evaluation.head, evaluation.checked)
    return complete.complete(ctx, session, task, evaluation)

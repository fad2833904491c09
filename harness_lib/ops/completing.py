"""Commit, merge or hand back work whose check has passed, as its gate says."""

from __future__ import annotations

from harness_lib.ops import committing, handing_back, landing, outcome
from harness_lib.ops.context import Context
from harness_lib.ops.judging import Judged
from harness_lib.task import Session, Task


def complete(ctx: Context, session: Session, task: Task, judged: Judged) -> outcome.Ended:
    """Commit or merge the content that has passed its check, or hand it back; record what came of it.

    Raises what `committing.commit` and `landing.land` raise.
    """
    if judged.against:
        return handing_back.because_of_content(ctx, session, task, judged.against)
    if task.gate is not None and task.gate.target is not None:
        return landing.land(ctx, session, task, judged.tree, judged.head)
    return committing.commit(ctx, session, task, judged.tree, judged.head)

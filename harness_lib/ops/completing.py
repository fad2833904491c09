"""Where work whose check has passed goes: into the branch that its gate names, or where it was made."""

from __future__ import annotations

from harness_lib.ops import committing, landing, outcome
from harness_lib.ops.context import Context
from harness_lib.task import Session, Task


def complete(ctx: Context, session: Session, task: Task, tree: str, head: str) -> outcome.Ended:
    """Commit or merge `tree`, the content the check was run on, on top of `head`; record what came of it.

    Raises what `committing.commit` and `landing.land` raise.
    """
    if task.gate is not None and task.gate.target is not None:
        return landing.land(ctx, session, task, tree, head)
    return committing.commit(ctx, session, task, tree, head)

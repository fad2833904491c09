"""Record how far the work on a task has come, with the content of its work tree."""

from __future__ import annotations

import re

from harness_lib import timestamps
from harness_lib.attempts import outcome, under_way
from harness_lib.core.context import Context
from harness_lib.core.ownership import HeldTask
from harness_lib.errors import UsageError
from harness_lib.rules import transitions
from harness_lib.system.git import snapshot
from harness_lib.task import Checkpoint, Task

DESCRIPTION_LENGTH = 1000


def record(ctx: Context, held: HeldTask, step: tuple[int, int], description: str) -> Task:
    """Return the held task with the checkpoint: `step` is M and N, `description` one line.

    Raises RefusedError if a person's merge or the like is under way.
    """
    under_way.require_none_of_a_person(ctx.git, held.task)
    done, total = step
    tree = snapshot.capture(ctx.git, ctx.keep_out)
    with ctx.store.transaction() as tx:
        task = transitions.checkpoint(
            outcome.require_claim(tx, held.task),
            Checkpoint(done, total, description, timestamps.render(tx.now), tree),
            now=tx.now,
            lease_seconds=ctx.lease_seconds if tx.concurrent else None,
        )
        tx.replace(task)
        quoted = description.replace('"', "'")
        tx.log("CHECKPOINT", f'step={done}/{total} "{quoted}"', session=held.session.number, task=task.id)
    return task


def parse(step: str) -> tuple[int, int]:
    """Return M and N of "M/N"; UsageError if `step` is no such thing."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", step)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(
            f"{step!r} is no step.", 'Write it as M/N: harness checkpoint task-001 2/4 "what was done"'
        )
    return int(match[1]), int(match[2])

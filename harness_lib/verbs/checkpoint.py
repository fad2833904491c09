"""`harness checkpoint`: say how far the work has come; evidence for recovery."""

from __future__ import annotations

import re

from harness_lib import timestamps
from harness_lib.attempts import outcome
from harness_lib.core import outbox, ownership, quoting
from harness_lib.core.context import Context
from harness_lib.core.ownership import Held
from harness_lib.core.reply import Reply
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.rules import transitions
from harness_lib.system.git import snapshot
from harness_lib.task import Checkpoint, Task

DESCRIPTION_LENGTH = 1000


def run(ctx: Context, task_id: str | None, step: str, text: str) -> Reply:
    """Record `step`, "M/N", with the content of the work tree, and renew the lease; None: the held task."""
    done, total = _parse(step)
    description = quoting.one_line(text, DESCRIPTION_LENGTH)
    held = ownership.require_settled(ctx.store.ask_to_change(), task_id, ctx)
    try:
        task = _record(ctx, held, done, total, description)
    except (EnvSetupError, OSError) as error:
        return outbox.leave(ctx, error, "checkpoint", held.task.id, step, description)
    return Reply(
        "checkpoint",
        f"{task.id}: {done}/{total} recorded.",
        session=held.session.number,
        task=task,
        next=ownership.finish(ctx, task),
    )


def _record(ctx: Context, held: Held, done: int, total: int, description: str) -> Task:
    """Return the held task with the checkpoint."""
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


def _parse(step: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", step)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(
            f"{step!r} is no step.", 'Write it as M/N: harness checkpoint task-001 2/4 "what was done"'
        )
    return int(found[1]), int(found[2])

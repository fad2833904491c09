"""Record what later tasks should know."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.core import ownership, quoting
from harness_lib.core.context import Context
from harness_lib.errors import UsageError
from harness_lib.task import Task

# What the contract allows; a brief shows less.
TEXT_LENGTH = 2000


MOST = 20


def line(task_id: str, text: str) -> str:
    """Return `text` as the one line that is recorded of it; UsageError if nothing is left."""
    noted = quoting.one_line(text, TEXT_LENGTH)
    if not noted:
        raise UsageError(
            "Say what is to be noted.", typed.harness("note", task_id, rest='"what later tasks should know"')
        )
    return noted


def record(ctx: Context, task_id: str, note: str) -> tuple[Task, list[str]]:
    """Return the task with `note`, a line, and the notes that had to make way for it.

    Raises UsageError if there is no such task.
    """
    with ctx.store.transaction() as tx:
        task = ownership.require_task(tx, task_id)
        kept = [*(old for old in task.notes if old != note), note]
        task = task._replace(notes=tuple(kept[-MOST:]))
        tx.replace(task)
    return task, kept[:-MOST]

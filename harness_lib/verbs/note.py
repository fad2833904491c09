"""`harness note ID TEXT`: what later tasks should know; their briefs show it."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.core import outbox, ownership, quoting
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.task import Task

# What the contract allows; a brief shows less.
TEXT_LENGTH = 2000
MOST = 20


def run(ctx: Context, task_id: str, text: str) -> Reply:
    """Append `text`, as one line, to the notes of a task in whatever status; anybody may.

    The same words twice are one note; beyond MOST the oldest goes, with a warning.
    Raises UsageError if there is no such task, or no text.
    """
    line = quoting.one_line(text, TEXT_LENGTH)
    if not line:
        raise UsageError(
            "Say what is to be noted.", typed.harness("note", task_id, rest='"what later tasks should know"')
        )
    try:
        task, lost = _record(ctx, task_id, line)
    except (EnvSetupError, OSError) as error:
        return outbox.leave(ctx, error, "note", task_id, line)
    return Reply(
        "note",
        f"noted for {task.id}; later tasks will be told.",
        task=task,
        next=ownership.finish(ctx, task) if task.status == "in_progress" else "harness status",
        warnings=tuple(_warnings(line, lost)),
    )


def _record(ctx: Context, task_id: str, line: str) -> tuple[Task, list[str]]:
    """Return the task with the note, and the notes that had to make way for it."""
    with ctx.store.transaction() as tx:
        task = ownership.require_task(tx, task_id)
        kept = [*(old for old in task.notes if old != line), line]
        task = task._replace(notes=tuple(kept[-MOST:]))
        tx.replace(task)
    return task, kept[:-MOST]


def _warnings(line: str, lost: list[str]) -> list[str]:
    told = [f"A task keeps {MOST} notes; the oldest one went: {quoting.one_line(old, 80)}" for old in lost]
    if len(line) > quoting.NOTE_LENGTH:
        told.append(
            f"A brief shows the first {quoting.NOTE_LENGTH} characters of a note, this one is longer."
        )
    return told

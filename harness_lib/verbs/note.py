"""`harness note ID TEXT`: add a note that the briefs of later tasks show."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.attempts import dialogue
from harness_lib.core import ownership, quoting
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError

SUMMARY = "leave a note for later tasks"
EXAMPLE = 'harness note task-001 "the test server needs a port of its own"'
HELP_ORDER = 150


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", help="the task that taught it")
    parser.add_argument("text", help="what later tasks should know: a decision, a trap")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Append the text, as one line, to the notes of a task in any status. Every caller may do this.

    A repeated note counts once; beyond `dialogue.MOST_NOTES` the oldest note is dropped, with a warning.
    """
    line = dialogue.note_line(args.id, args.text)
    try:
        task, lost = dialogue.record_note(ctx, args.id, line)
    except (EnvSetupError, OSError) as error:
        return dialogue.leave_letter(ctx, error, "note", args.id, line)
    mine = task.status == "in_progress" and task.claimed_by in (None, ctx.owner.worker)
    warnings = [
        f"A task keeps {dialogue.MOST_NOTES} notes; the oldest one went: {quoting.one_line(old, 80)}"
        for old in lost
    ]
    if len(line) > quoting.NOTE_LENGTH:
        warnings.append(
            f"A brief shows the first {quoting.NOTE_LENGTH} characters of a note, this one is longer."
        )
    return Reply(
        f"noted for {task.id}; later tasks will be told.",
        task=task,
        next=ownership.finish_command(ctx, task) if mine else "harness status",
        warnings=tuple(warnings),
    )

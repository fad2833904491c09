"""Shorten and quote texts of a list, so that they stay data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.text import REPLACED, cut, harmless, in_one_line, some

TITLE_LENGTH = 200
# A description is the specification: it is quoted whole up to this length.
QUOTED_LENGTH = 20_000
REASON_LENGTH = 2000
FAILURE_LENGTH = 600
NOTE_LENGTH = 400
# The user or an agent reads the brief of a claim in a chat, where each line costs.
NOTES = 5
TOUCHED = 3
PATH_LENGTH = 80
# The command at the end of such a line must not be cut off.
LOOK_LENGTH = 400
NOTES_LENGTH = 1000


def one_line(text: str, limit: int = FAILURE_LENGTH) -> str:
    """Return `text` without line breaks and control characters, cut to `limit` characters."""
    return cut(in_one_line(text, instead=REPLACED), limit)


def printable(row: str) -> str:
    """Return `row` with its blanks, and without characters that move a terminal's cursor."""
    return harmless(row.expandtabs(4))


def named(names: Sequence[str], most: int = 5, limit: int = PATH_LENGTH) -> str:
    """Return the first `most` names in one line, each cut to `limit` characters, and how many more."""
    return some([one_line(name, limit) for name in names], most)


def title(task: Task) -> str:
    """Return the task's title as one bounded line."""
    return one_line(task.title, TITLE_LENGTH)


def quoted(text: str, rest: str) -> list[str]:
    """Return `text` line by line, each marked as a quotation; beyond QUOTED_LENGTH it refers to `rest`."""
    rows = [f"  | {printable(row)}".rstrip() for row in text[:QUOTED_LENGTH].splitlines()]
    left = len(text) - QUOTED_LENGTH
    return [*rows, f"  … {left:,} more characters: {rest}"] if left > 0 else rows


def touched(files: Sequence[str]) -> str:
    """Return what is said of an attempt, or of its task, that has changed check inputs."""
    return f"changed a file that its check depends on: {named(files, TOUCHED)}"


def look_at(task: Task, limit: int = LOOK_LENGTH) -> list[str]:
    """Return a line for each thing that a user should look at in the work that completed `task`."""
    return [one_line(f"look at: {sentence}", limit) for sentence in task.look_at]


def notes(questions: Questions, task: Task, *, most: int = NOTES, length: int = NOTES_LENGTH) -> list[str]:
    """Return at most `most` notes of this task and of completed ones, `length` characters in all.

    Its own come first, then those of its dependencies, then the newest; [] if there are none.
    """
    noted = questions.noted(task.id, most)
    lines = (f"- {other.id}: {one_line(text, NOTE_LENGTH)}" for other in noted for text in other.notes[::-1])
    kept: list[str] = []
    for line in islice(lines, most):
        length -= len(line)
        if length < 0:
            break
        kept.append(line)
    return ["notes that tasks left for later ones:", *kept] if kept else []

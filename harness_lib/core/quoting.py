"""Shorten texts of a list and quote them, in one line or line by line, so that they stay data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.text import REPLACED, harmless, in_one_line

TITLE_LENGTH = 200
# A description is the specification: it is quoted whole as long as a reader can hold it.
QUOTED_LENGTH = 20_000
REASON_LENGTH = 2000
FAILURE_LENGTH = 600
NOTE_LENGTH = 400
# A person or an agent reads the brief of a claim in a chat, where each line costs.
NOTES = 5
TOUCHED = 8
NOTES_LENGTH = 1000


def one_line(text: str, limit: int) -> str:
    """Return `text` without line breaks and control characters, cut to `limit` characters."""
    flat = in_one_line(text, instead=REPLACED)
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def printable(row: str) -> str:
    """Return `row` with its blanks as they are, and nothing that moves a terminal's cursor."""
    return harmless(row.expandtabs(4))


def some(texts: Sequence[str], most: int) -> str:
    """Return the first `most` texts in one line, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def title(task: Task) -> str:
    """Return the task's title as one bounded line."""
    return one_line(task.title, TITLE_LENGTH)


def quoted(text: str, rest: str, limit: int = QUOTED_LENGTH) -> list[str]:
    """Return `text` line by line, each marked as somebody's words; what is beyond `limit`: see `rest`."""
    rows = [f"  | {printable(row)}".rstrip() for row in text[:limit].splitlines()]
    return rows if len(text) <= limit else [*rows, f"  … {len(text) - limit:,} more characters: {rest}"]


def touched(files: Sequence[str]) -> str:
    """Return the sentence about the files of its judge that an attempt has changed."""
    told = some([one_line(name, TITLE_LENGTH) for name in files], TOUCHED)
    return f"the attempt changed what judges it: {told}"


def notes(questions: Questions, task: Task, *, most: int = NOTES, length: int = NOTES_LENGTH) -> list[str]:
    """Return what this task and completed ones noted, under a headline; at most `most`, `length` in all.

    Its own come first, then those of the tasks it depends on, then the newest; [] if there are none.
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

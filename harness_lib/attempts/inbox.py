"""Record the notes, checkpoints and proposed tasks that an agent in a sandbox has left for its worker.

Letters are data from an agent: they may note, propose a task, and checkpoint the one that the worker holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from harness_lib.attempts import checkpoints, notes
from harness_lib.core import ownership, proposals, quoting
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError, LeaseLostError, UsageError
from harness_lib.system.files import atomic, listing, nofollow

MOST = 50
MOST_BYTES = 64 * 1024


def _note(ctx: Context, task_id: str, text: str) -> None:
    notes.record(ctx, task_id, notes.line(task_id, text))


def _checkpoint(ctx: Context, task_id: str, step: str, text: str) -> None:
    numbers = checkpoints.parse(step)
    held = ownership.require_settled(ctx.store.ask_to_change(), task_id, ctx)
    checkpoints.record(ctx, held, numbers, quoting.one_line(text, checkpoints.DESCRIPTION_LENGTH))


# How many words each has after the task.
VERBS: Mapping[str, tuple[Callable[..., object], int]] = {
    "note": (_note, 1),
    "checkpoint": (_checkpoint, 2),
    "add": (proposals.from_letter, 1),
}


def open_all(ctx: Context) -> list[str]:
    """Do what the letters in this work tree say, and remove them; return what was wrong with some.

    What cannot be recorded now (the list is held or half saved, the disk full) stays for the next time: the
    agent whose letter it is works on.
    """
    problems: list[str] = []
    for letter in _letters(proposals.directory_of(ctx)):
        try:
            problems += _open(ctx, letter)
        except (HarnessError, OSError):
            break
        atomic.remove(letter)
    return problems


def _letters(place: Path | None) -> list[Path]:
    # Behind a link there may be anybody's files, and a letter is removed.
    if place is None or proposals.is_linked(place):
        return []
    letters = (path for path in listing.matching(place, "*.json") if path.is_file() and not path.is_symlink())
    return sorted(letters)[:MOST]


def _open(ctx: Context, letter: Path) -> Iterator[str]:
    try:
        with nofollow.reading(letter) as stream:
            document = json.loads(stream.read(MOST_BYTES))
        verb, task_id, words = document["verb"], str(document["task"]), [str(w) for w in document["words"]]
        run, count = VERBS[verb]
    except (OSError, ValueError, LookupError, TypeError) as error:
        yield f"A letter of the agent cannot be read: {error!r}"
        return
    if len(words) != count:
        yield f"A letter of the agent cannot be read: {verb} takes {count} words, not {len(words)}"
        return
    try:
        run(ctx, task_id, *words)
    except (UsageError, LeaseLostError) as error:
        yield f"The agent left a {verb} that was not recorded: {error}"

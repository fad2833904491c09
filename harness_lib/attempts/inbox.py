"""Record what an agent reports while it works: notes, checkpoints and proposed tasks.

A letter in the inbox is data from an agent in a sandbox: it may note, propose a task, and checkpoint the task
that its worker holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from harness_lib import timestamps, typed
from harness_lib.attempts import commit, outcome, snapshots
from harness_lib.core import ownership, proposals, quoting
from harness_lib.core.context import Context
from harness_lib.core.ownership import HeldTask
from harness_lib.errors import HarnessError, LeaseLostError, NotAllowedError, UsageError
from harness_lib.rules import transitions
from harness_lib.system import fs
from harness_lib.system.files import nofollow
from harness_lib.task import Checkpoint, Task

MOST = 50
MOST_BYTES = 64 * 1024


def _note(ctx: Context, task_id: str, text: str) -> None:
    record_note(ctx, task_id, line(task_id, text))


def _checkpoint(ctx: Context, task_id: str, step: str, text: str) -> None:
    numbers = parse(step)
    held = ownership.require_settled(ctx, task_id)
    record_checkpoint(ctx, held, numbers, quoting.one_line(text, DESCRIPTION_LENGTH))


# How many arguments each letter has after the task.
VERBS: Mapping[str, tuple[Callable[..., object], int]] = {
    "note": (_note, 1),
    "checkpoint": (_checkpoint, 2),
    "add": (proposals.from_letter, 1),
}


def open_all(ctx: Context) -> list[str]:
    """Carry out the letters in this work tree and remove them; return what was wrong with them.

    What cannot be recorded now (the list is held or half saved, the disk full) stays for the next time: the
    agent whose letter it is works on.
    """
    place = proposals.directory_of(ctx)
    # Letters are removed, and a link may lead to somebody's files.
    if place is None or proposals.is_linked(place):
        return []
    letters = (path for path in fs.matching(place, "*.json") if path.is_file() and not path.is_symlink())
    problems: list[str] = []
    for letter in sorted(letters)[:MOST]:
        try:
            problems += _open(ctx, letter)
        except (HarnessError, OSError):
            break
        fs.remove(letter)
    return problems


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
    except (UsageError, LeaseLostError, NotAllowedError) as error:
        yield f"What the agent left was not recorded (harness {verb}): {error}"


# The schema's limit; a brief shows less.
TEXT_LENGTH = 2000


MOST_NOTES = 20


def line(task_id: str, text: str) -> str:
    """Return `text` as one line to record. Raises UsageError if nothing is left of it."""
    noted = quoting.one_line(text, TEXT_LENGTH)
    if not noted:
        raise UsageError(
            "Say what is to be noted.", typed.harness("note", task_id, rest='"what later tasks should know"')
        )
    return noted


def record_note(ctx: Context, task_id: str, note: str) -> tuple[Task, list[str]]:
    """Return the task with `note`, and the old notes that were removed for it.

    Raises UsageError if there is no such task.
    """
    with ctx.store.transaction() as tx:
        task = ownership.require_task(tx, task_id)
        kept = [*(old for old in task.notes if old != note), note]
        task = task._replace(notes=tuple(kept[-MOST_NOTES:]))
        tx.replace(task)
    return task, kept[:-MOST_NOTES]


DESCRIPTION_LENGTH = 1000


def record_checkpoint(ctx: Context, held: HeldTask, step: tuple[int, int], description: str) -> Task:
    """Return the held task with the checkpoint: `step` is M and N, `description` one line.

    Raises RefusedError if the user's merge or the like is under way.
    """
    done, total = step
    again = typed.harness("checkpoint", held.task.id, f"{done}/{total}", description)
    commit.require_none_of_user(ctx.git, held.task, again)
    tree = ctx.capture()
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
    keep_elsewhere(ctx, task, tree)
    return task


# Why the work of a task is on this machine only: an attempt says so once.
_kept_here: dict[str, str] = {}


def keep_elsewhere(ctx: Context, task: Task, tree: str | None = None) -> None:
    """Push the work so far, the content `tree` or what it is now, if machines share the list."""
    if ctx.store.shared is None:
        return
    answer = snapshots.take(ctx, task, tree)
    if not answer.done and _kept_here.get(task.id) != answer.why:
        _kept_here[task.id] = answer.why
        ctx.say(f"the work so far of {task.id} is on this machine only: {answer.why}")


def parse(step: str) -> tuple[int, int]:
    """Return M and N of the text "M/N". Raises UsageError for other text."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", step)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(
            f"{step!r} is not a step.", 'Write it as M/N: harness checkpoint task-001 2/4 "what was done"'
        )
    return int(match[1]), int(match[2])

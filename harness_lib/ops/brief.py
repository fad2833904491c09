"""What an agent is told about a task: short, and every text from the list quoted as data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from harness_lib import typed
from harness_lib.ops import checking
from harness_lib.ops.keeping import RESCUE_REFS
from harness_lib.system.git import Git
from harness_lib.task import State, Task, Validation

TITLE_LENGTH = 200
DESCRIPTION_LENGTH = 2000
FAILURE_LENGTH = 600
NOTE_LENGTH = 400
# A person or an agent reads the brief of a claim in a chat, where each line costs.
NOTES = 5
NOTES_LENGTH = 1000


def one_line(text: str, limit: int) -> str:
    """Return `text` without line breaks and control characters, cut to `limit` characters."""
    flat = " ".join("".join(c if c.isprintable() or c.isspace() else "\ufffd" for c in text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def some(texts: Sequence[str], most: int) -> str:
    """Return the first `most` texts in one line, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def title(task: Task) -> str:
    """Return the task's title as one bounded line."""
    return one_line(task.title, TITLE_LENGTH)


def of(task: Task, git: Git | None = None, state: State | None = None) -> str:
    """Return the brief of `task`.

    With `git` it also says where earlier attempts can be looked at, with `state` what other tasks have noted.
    """
    lines = [f"{task.id} [{task.priority}] attempt {task.attempts + 1} of {task.max_attempts}: {title(task)}"]
    if task.description:
        lines.append(f"description: {one_line(task.description, DESCRIPTION_LENGTH)}")
    lines.append(f"check: {_check(task)}")
    if task.validation.protect:
        lines.append(f"do not change: {', '.join(task.validation.protect)}")
    if task.checkpoints:
        last = task.checkpoints[-1]
        lines.append(f"last checkpoint: {last.step}/{last.total} {one_line(last.description, TITLE_LENGTH)}")
    if task.error_log:
        lines.append(f"last failure: {one_line(task.error_log[-1], FAILURE_LENGTH)}")
    if task.handback:
        lines.append(f"handed back: {one_line(task.handback.reason, DESCRIPTION_LENGTH)}")
    rescued = [ref for ref in rescues(task, git) if not ref.endswith("-check")] if git else []
    if rescued:
        lines.append(f"what the last attempt did (rolled back): {typed.git('show', '--stat', rescued[-1])}")
    lines += notes(state, task) if state else []
    return "\n".join(lines)


def notes(state: State, task: Task, *, most: int = NOTES, length: int = NOTES_LENGTH) -> list[str]:
    """Return what this task and completed ones noted, under a headline; at most `most`, `length` in all.

    Its own come first, then those of the tasks it depends on, then the newest; [] if there are none.
    """
    noted = [other for other in state.tasks if other.notes and _tells(other, task)]
    noted.sort(key=lambda t: (t.id == task.id, t.id in task.depends_on, t.completed_at or ""), reverse=True)
    lines = (f"- {other.id}: {one_line(text, NOTE_LENGTH)}" for other in noted for text in other.notes[::-1])
    kept: list[str] = []
    for line in islice(lines, most):
        length -= len(line)
        if length < 0:
            break
        kept.append(line)
    return ["notes that tasks left for later ones:", *kept] if kept else []


def _tells(other: Task, task: Task) -> bool:
    """Whether the notes of `other` concern `task`: what nobody has finished may not be so."""
    return other.status == "completed" or other.id == task.id


def _check(task: Task) -> str:
    command = task.validation.command
    if not command:
        return f"none yet. Give it one, or it cannot be completed: {typed.give_check(task.id)}"
    place = f" in {task.validation.cwd}" if task.validation.cwd else ""
    seconds = task.validation.timeout_seconds
    limit = f" (at most {seconds} s)" if seconds != Validation().timeout_seconds else ""
    return f"{one_line(command, DESCRIPTION_LENGTH)}{place}{limit}"


def rescues(task: Task, git: Git) -> list[str]:
    """Return the refs that keep the work of this task's earlier attempts, oldest first."""
    found = [name for name, _oid in git.refs(f"{RESCUE_REFS}{checking.safe_name(task.id)}/")]
    # Git sorts them as texts: 10 before 2.
    return sorted(
        found, key=lambda ref: [int(number) for number in re.findall(r"\d+", ref.rpartition("/")[2])]
    )

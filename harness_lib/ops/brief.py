"""What an agent is told about a task: short, and every text from the list quoted as data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from harness_lib import typed
from harness_lib.ops import checking, holding
from harness_lib.ops.context import Context
from harness_lib.ops.keeping import RESCUE_REFS, look_at
from harness_lib.system import snapshot
from harness_lib.system.git import Git
from harness_lib.task import State, Task
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


def _printable(row: str) -> str:
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
    rows = [f"  | {_printable(row)}".rstrip() for row in text[:limit].splitlines()]
    return rows if len(text) <= limit else [*rows, f"  … {len(text) - limit:,} more characters: {rest}"]


def of(task: Task, ctx: Context | None = None, state: State | None = None, program: str = "harness") -> str:
    """Return the brief of `task`; `program` is what to type for `harness`.

    With `ctx` it also says what the last attempt failed at and where it can be looked at, with `state` what
    other tasks have noted.
    """
    whole = typed.harness("show", task.id, "--json", program=program)
    lines = [f"{task.id} [{task.priority}] attempt {task.attempts + 1} of {task.max_attempts}: {title(task)}"]
    if task.description:
        lines += ["description:", *quoted(task.description, whole)]
    lines += _check(task, whole, holding.give_check(ctx, task) if ctx else typed.give_check(task.id))
    if task.validation.protect:
        lines.append(f"do not change: {', '.join(task.validation.protect)}, nor how the check is run")
    if task.checkpoints:
        last = task.checkpoints[-1]
        lines.append(f"last checkpoint: {last.step}/{last.total} {one_line(last.description, TITLE_LENGTH)}")
    if task.interruptions and task.status == "in_progress":
        lines.append(
            f"interrupted so far: {task.interruptions}; the work stands (git status), no attempt was counted"
        )
    lines += _failure(task, checking.last_excerpt(ctx, task) if ctx else None)
    lines += _not_kept(task, ctx.git) if ctx else []
    rescued = attempts_kept(task, ctx.git) if ctx else []
    if rescued:
        lines.append(f"what the last attempt did (rolled back): {look_at(rescued[-1])}")
    lines += notes(state, task) if state else []
    return "\n".join(lines)


def _failure(task: Task, said: tuple[str, Path] | None) -> list[str]:
    lines = [f"last failure: {one_line(task.error_log[-1], FAILURE_LENGTH)}"] if task.error_log else []
    if task.handback:
        lines.append(f"handed back: {one_line(task.handback.reason, REASON_LENGTH)}")
    if said is not None:
        text, log = said
        lines += ["what the check said:", *quoted(text, str(log)), f"all that it said: {log}"]
    return lines


def touched(files: Sequence[str]) -> str:
    """Return the sentence about the files of its judge that an attempt has changed."""
    told = some([one_line(name, TITLE_LENGTH) for name in files], TOUCHED)
    return f"the attempt changed what judges it: {told}"


def _not_kept(task: Task, git: Git) -> list[str]:
    if task.gate is None or task.gate.before is None:
        return []
    names = snapshot.read_untracked(git, task.gate.before).unprotected
    told = some([one_line(name, TITLE_LENGTH) for name in names], NOTES)
    return [f"not yours, and too large to keep a copy of (leave alone): {told}"] if names else []


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
    return other.is_done or other.id == task.id


def _check(task: Task, whole: str, cure: str) -> list[str]:
    command = task.validation.command
    if not command:
        return [f"check: none yet, and without one it cannot be completed; it needs one: {cure}"]
    one = command.strip()
    plain = "\n" not in one and len(one) <= REASON_LENGTH
    lines = [f"check: {_printable(one)}"] if plain else ["check:", *quoted(one, whole)]
    if task.validation.cwd:
        lines.append(f"the check runs in: {one_line(task.validation.cwd, REASON_LENGTH)}")
    return [*lines, f"the check may take: {task.validation.timeout_seconds} s"]


def attempts_kept(task: Task, git: Git) -> list[str]:
    """Return the refs of the work of earlier attempts, oldest first, without what else is kept of them.

    A check has left something, or something was there before.
    """
    return [ref for ref in rescues(task, git) if "-" not in ref.rpartition("/")[2]]


def rescues(task: Task, git: Git) -> list[str]:
    """Return the refs that keep the work of this task's earlier attempts, oldest first."""
    found = [name for name, _oid in git.refs(f"{RESCUE_REFS}{checking.safe_name(task.id)}/")]
    # Git sorts them as texts: 10 before 2.
    return sorted(
        found, key=lambda ref: [int(number) for number in re.findall(r"\d+", ref.rpartition("/")[2])]
    )

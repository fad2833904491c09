"""What a re-check says: the check of a completed task, run on a clean checkout of what is committed.

A task is red where its check failed there and nothing excuses it. It stays red until its check has run again,
or until it is done again: later commits alone prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

from harness_lib.task import Task

SHORT = 12
# Of more completed tasks only those are checked again whose files have changed.
MOST = 200
Scope = Literal["all", "changed", "none"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

# A check and the directory that it runs in.
Key = tuple[str | None, str | None]
# Says of a commit whether it has the content that is to be checked.
IsThere = Callable[[str], bool]


def key(task: Task) -> Key:
    """Return what is run for `task`: tasks with the same key share one run on the same content."""
    return task.validation.command, task.validation.cwd


def whole_key(task: Task) -> tuple[Key, str]:
    """Return what `key` does, and which held-out check belongs to it."""
    return key(task), task.validation.hidden.sha256 if task.validation.hidden else ""


def can_be_rechecked(task: Task) -> bool:
    """Return whether `task` is completed and has a check."""
    return task.is_done and bool(task.validation.command and task.validation.command.strip())


def is_red(task: Task) -> bool:
    """Return whether the check of the completed `task` failed on a clean checkout, and nothing excuses it."""
    found = task.recheck
    return task.is_done and found is not None and not found.passed and found.excuse is None


def red(tasks: Iterable[Task]) -> list[Task]:
    """Return those of `tasks` that are red."""
    return [task for task in tasks if task.recheck is not None and is_red(task)]


def unknown(tasks: Iterable[Task], is_there: IsThere) -> list[Task]:
    """Return the tasks whose check has not run on the content that `is_there` knows."""
    asked = (task for task in tasks if can_be_rechecked(task))
    return [task for task in asked if task.recheck is None or not is_there(task.recheck.commit)]


def due(tasks: Sequence[Task], is_there: IsThere) -> list[Task]:
    """Return the tasks whose check has not run on the content that `is_there` knows.

    Where it has run for all of them, return those that failed there, the oldest run first: the reason may lie
    outside of what is committed, and be gone by now.
    """
    failed = [task for task in tasks if can_be_rechecked(task) and task.recheck and not task.recheck.passed]
    return unknown(tasks, is_there) or sorted(
        failed, key=lambda task: (task.recheck and task.recheck.at) or ""
    )


def are_awaited(tasks: Iterable[Task], since: str | None) -> bool:
    """Return whether a task that was completed after `since` has not been checked again."""
    return any(
        can_be_rechecked(task) and task.recheck is None and (task.completed_at or "") >= (since or "")
        for task in tasks
    )


def words(task: Task) -> str:
    """Return what is known of the completed `task` beside that it is completed, in a few words."""
    found = task.recheck
    if found is None:
        return "not re-checked"
    at = found.commit[:SHORT]
    if found.passed:
        return f"checked at {at}"
    match found.excuse:
        case "not_reproducible":
            return f"not reproducible at {at}"
        case "elsewhere":
            return f"finished elsewhere: its commit is not in the history of {at}"
        case "held_out":
            return f"its held-out check could not run at {at}"
        case None:
            return f"its check fails at {at}"


def needed(tasks: Sequence[Task]) -> list[str]:
    """Return the files that git does not keep and that checks of `tasks` need, each once."""
    found = (task.recheck for task in tasks)
    return list(dict.fromkeys(path for each in found if each is not None for path in each.missing))

"""Count the tasks of a list, and decide when a session has nothing left to do or may do no more.

Source: docs/protocol.md, "Stopping Conditions" and "Activation Marker"; docs/design.md, "The Stop hook".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness_lib.rules import graph, rechecks, selection
from harness_lib.rules.rechecks import red
from harness_lib.task import State, Status, StopReason, Task

SECONDS_PER_DAY = 86_400.0


class Counts(NamedTuple):
    """The counts of tasks by status.

    `pending` are also those that only an external edit has completed.
    `blocked` are those of `pending` that depend directly on a task failed for good: computed, never stored.
    `failed` is `retryable` + `permanent`; `red` are those of `completed` whose last re-check failed.
    `attempts` counts those that failed, also before a `retry` or `remove`; `checkpoints` those of each
    task's last attempt.
    """

    total: int
    completed: int
    failed: int
    pending: int
    in_progress: int
    blocked: int
    attempts: int
    checkpoints: int
    retryable: int = 0
    permanent: int = 0
    red: int = 0


def count(state: State) -> Counts:
    """Return the numbers of `state`."""
    # Every change counts the whole list, so only those tasks are looked at that a number can be about.
    tasks = state.tasks
    groups: dict[Status, list[Task]] = {"completed": [], "failed": [], "pending": [], "in_progress": []}
    for task in tasks:
        groups[task.status].append(task)
    doubted = [task for task in groups["completed"] if task.unproven]
    permanent = {task.id for task in groups["failed"] if selection.is_permanent(task)}
    waiting = (*groups["pending"], *doubted) if permanent else ()
    return Counts(
        total=len(tasks),
        completed=len(groups["completed"]) - len(doubted),
        failed=len(groups["failed"]),
        pending=len(groups["pending"]) + len(doubted),
        in_progress=len(groups["in_progress"]),
        blocked=sum(not permanent.isdisjoint(task.depends_on) for task in waiting),
        attempts=state.attempts_reset + sum([task.attempts for task in tasks if task.attempts]),
        checkpoints=sum([len(task.checkpoints) for task in tasks if task.checkpoints]),
        retryable=len(groups["failed"]) - len(permanent),
        permanent=len(permanent),
        red=len(red(groups["completed"])),
    )


def render(counts: Counts) -> str:
    """Return the text behind `STATS` in the log.

    The protocol's fields in its order; `in_progress`, for which it has none, stands last and only if
    there are some, so that old readers find everything in its place.
    """
    text = (
        f"tasks_total={counts.total} completed={counts.completed} failed={counts.failed} "
        f"pending={counts.pending} blocked={counts.blocked} "
        f"attempts_total={counts.attempts} checkpoints={counts.checkpoints}"
    )
    return f"{text} in_progress={counts.in_progress}" if counts.in_progress else text


class Ahead(NamedTuple):
    """How many tasks are left, and how many of them can only be done one after another."""

    tasks: int = 0
    chain: int = 0

    def rounds(self, workers: int) -> int:
        """Return the least number of tasks for the busiest of `workers`."""
        return max(-(-self.tasks // workers), self.chain)


def of(state: State) -> Ahead:
    """Return how many tasks of `state` are left."""
    lost = selection.hopeless(state)
    left = [task for task in state.tasks if not task.is_done and task.id not in lost]
    return Ahead(len(left), max(graph.depths(left).values(), default=-1) + 1)


class Old(NamedTuple):
    """A file: its name, its time of change (seconds since the epoch), and its size in bytes."""

    name: str
    at: float
    size: int


def outdated(files: Iterable[Old], now: float, days: float, most_bytes: int) -> tuple[Old, ...]:
    """Return the files to delete, the oldest first: older than `days`, or beyond `most_bytes` in all."""
    newest = sorted(files, key=lambda each: each.at, reverse=True)
    gone, kept = [], 0
    for each in newest:
        kept += each.size
        if now - each.at > days * SECONDS_PER_DAY or kept > most_bytes:
            kept -= each.size
            gone.append(each)
    return tuple(gone[::-1])


def no_work(state: State) -> StopReason | None:
    """Return why no task can be claimed; None if one can, or an unverified one can be verified.

    `done`: all are completed (an empty list too); `waiting`: others work on what is left, or the user must
    act on a halted task first; `blocked`: what is left has failed for good or depends on such a task;
    `recheck_failed`: `done` or `blocked`, but a completed task is red.
    """
    if all(task.is_done for task in state.tasks):
        return "recheck_failed" if rechecks.red(state.tasks) else "done"
    if any(True for _ in selection.eligible(state)):
        return None
    if any(task.status == "completed" and task.unproven for task in state.tasks):
        return None
    if any(_is_awaited(task) for task in state.tasks):
        return "waiting"
    return "recheck_failed" if rechecks.red(state.tasks) else "blocked"


def work_remains(state: State) -> bool:
    """Return True while a task is pending, in progress or retryable.

    A task that can never run counts until validation has recorded that, and so does a halted one: the user
    will come back to it.
    """
    return any(not task.is_done and not selection.is_permanent(task) for task in state.tasks)


def _is_awaited(task: Task) -> bool:
    if task.status == "in_progress":
        return True
    return task.status != "completed" and task.halt is not None and not selection.is_permanent(task)

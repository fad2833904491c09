"""Count the tasks of a list: how many are how far, with their attempts and checkpoints."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from harness_lib.rules.failures import is_permanent
from harness_lib.rules.rechecks import red
from harness_lib.task import State, Status, Task


class Counts(NamedTuple):
    """How many tasks are how far.

    `pending` are also those of which only somebody else's write says that they are completed.
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
    retryable: int
    permanent: int
    red: int = 0


def count(state: State) -> Counts:
    """Return the numbers of `state`."""
    # Every change counts the whole list: only tasks for which it matters are asked more than one field.
    tasks = state.tasks
    by_status = Counter([task.status for task in tasks])
    doubted = sum([task.unproven and task.status == "completed" for task in tasks])
    permanent = {task.id for task in tasks if task.status == "failed" and is_permanent(task)}
    waiting = [task for task in tasks if permanent and _status(task) == "pending"]
    return Counts(
        total=len(tasks),
        completed=by_status["completed"] - doubted,
        failed=by_status["failed"],
        pending=by_status["pending"] + doubted,
        in_progress=by_status["in_progress"],
        blocked=sum(not permanent.isdisjoint(task.depends_on) for task in waiting),
        attempts=state.attempts_reset + sum([task.attempts for task in tasks]),
        checkpoints=sum([len(task.checkpoints) for task in tasks]),
        retryable=by_status["failed"] - len(permanent),
        permanent=len(permanent),
        red=len(red(tasks)),
    )


def _status(task: Task) -> Status:
    return "pending" if task.status == "completed" and task.unproven else task.status


def line(state: State) -> str:
    """Return what stands behind `STATS` in the log.

    The protocol's fields in its order; `in_progress`, for which it has none, stands last and only if
    there are some, so that an old reader finds everything where it was.
    """
    return render(count(state))


def render(counts: Counts) -> str:
    """Return `line` of numbers that were counted before."""
    text = (
        f"tasks_total={counts.total} completed={counts.completed} failed={counts.failed} "
        f"pending={counts.pending} blocked={counts.blocked} "
        f"attempts_total={counts.attempts} checkpoints={counts.checkpoints}"
    )
    return f"{text} in_progress={counts.in_progress}" if counts.in_progress else text

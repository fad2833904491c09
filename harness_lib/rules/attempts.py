"""What is kept of each attempt at a task after it has ended: when it was, what it cost, how it went.

The last ones only: a list must not grow with every retry of a night.
"""

from __future__ import annotations

from datetime import datetime

from harness_lib import timestamps
from harness_lib.task import Attempt, Outcome, Task

KEPT = 10


def spend(task: Task, cost_usd: float, tokens: int) -> Task:
    """Return the task with what an agent has used up added to the attempt under way."""
    attempt = _current(task, task.attempts + 1)
    return _with(
        task, attempt._replace(cost_usd=round(attempt.cost_usd + cost_usd, 6), tokens=attempt.tokens + tokens)
    )


def ended(task: Task, now: datetime, outcome: Outcome) -> Task:
    """Return the task with its attempt recorded as over; a failed one is counted already.

    A claim that was handed back and has cost nothing leaves no trace.
    """
    if outcome == "pending" and _open(task) is None:
        return task
    number = max(1, task.attempts) if outcome == "failed" else task.attempts + 1
    return _with(task, _current(task, number)._replace(ended_at=timestamps.render(now), outcome=outcome))


def since(task: Task, began: datetime) -> tuple[Attempt, ...]:
    """Return the attempts that have ended since `began`."""
    return tuple(
        each for each in task.attempt_log if each.ended_at and timestamps.parse(each.ended_at) >= began
    )


def seconds(attempt: Attempt) -> float:
    """Return how long it took, 0 if that is not known."""
    if attempt.started_at is None or attempt.ended_at is None:
        return 0.0
    took = timestamps.parse(attempt.ended_at) - timestamps.parse(attempt.started_at)
    return max(0.0, took.total_seconds())


def _current(task: Task, number: int) -> Attempt:
    """Return what is recorded of this claim's attempt, or the beginning of it."""
    return _open(task) or Attempt(number, fence=task.fence, started_at=task.claimed_at)


def _open(task: Task) -> Attempt | None:
    """Return what has been recorded of this claim's attempt."""
    last = task.attempt_log[-1] if task.attempt_log else None
    return last if last is not None and last.outcome is None and last.fence == task.fence else None


def _with(task: Task, attempt: Attempt) -> Task:
    before = task.attempt_log if _open(task) is None else task.attempt_log[:-1]
    return task._replace(attempt_log=(*before, attempt)[-KEPT:])

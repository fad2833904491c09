"""Decide what a failure means for the attempt, for the task, and for the tasks that wait for it.

Source: docs/protocol.md, "Error Handling" and "Task Selection Algorithm" (dependency validation);
docs/design.md, "Choosing".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from harness_lib.rules import graph, transitions
from harness_lib.rules.attempts import Ending, category_of, entry
from harness_lib.task import Category, State, Task

__all__ = [
    "STRATEGIES",
    "Finding",
    "Strategy",
    "blocked_through",
    "category_of",
    "entry",
    "hopeless",
    "is_permanent",
    "strategy",
    "validate_dependencies",
]


class Strategy(NamedTuple):
    """What follows from a failure of one category.

    `ending`: how the attempt ends; `stops`: the session halts until a person has acted.
    """

    ending: Ending
    stops: bool
    summary: str


STRATEGIES: dict[Category, Strategy] = {
    "ENV_SETUP": Strategy(
        ending=Ending.EXCUSED,
        stops=True,
        summary="A person must look if harness-init.sh fails again.",
    ),
    "CONFIG": Strategy(
        ending=Ending.EXCUSED,
        stops=True,
        summary="A person must edit the named field.",
    ),
    "TASK_EXEC": Strategy(
        ending=Ending.FAILED,
        stops=False,
        summary="Roll back, then retry while attempts are left.",
    ),
    "TEST_FAIL": Strategy(
        ending=Ending.FAILED,
        stops=False,
        summary="Roll back, then retry with what the check's output says.",
    ),
    "TIMEOUT": Strategy(
        ending=Ending.FAILED,
        stops=False,
        summary="Kill the check, roll back, then retry; split the task if it happens again.",
    ),
    "DEPENDENCY": Strategy(
        ending=Ending.EXCUSED,
        stops=False,
        summary="Skip the task: it is never retried by itself.",
    ),
    "SESSION_TIMEOUT": Strategy(
        ending=Ending.FAILED,
        stops=False,
        summary="The next session recovers what is left of the attempt.",
    ),
}


class Finding(NamedTuple):
    """A task that can never run, and why; `message` has no category in front."""

    task_id: str
    message: str


def strategy(category: Category) -> Strategy:
    """Return what follows from a failure of this category."""
    return STRATEGIES[category]


def is_permanent(task: Task) -> bool:
    """Return True if the task has failed and is never retried by itself.

    Its attempts are used up, or one of its errors is a [DEPENDENCY].
    """
    return task.status == "failed" and (task.attempts >= task.max_attempts or _names_dependency(task))


def validate_dependencies(state: State, now: datetime) -> tuple[State, tuple[Finding, ...]]:
    """Return the state with every task that can never run marked `failed`, and what was found, in that order.

    First the members of rings, then, to the fixed point, whatever waits for a task that failed for good.
    Left alone are: completed tasks; tasks that have failed for good already; and tasks in progress, because
    somebody works on them and may complete them.
    Tasks that do not change stay the same objects; without a finding the same state is returned.
    """
    reasons = _cyclic(state)
    reasons.update(_blocked(state, reasons))
    if not reasons:
        return state, ()
    tasks = tuple(
        transitions.doom(task, now=now, message=reasons[task.id]) if task.id in reasons else task
        for task in state.tasks
    )
    return state._replace(tasks=tasks), tuple(Finding(*item) for item in reasons.items())


def hopeless(state: State) -> set[str]:
    """Return the tasks that nobody can ever complete as things stand.

    They have failed for good, wait for themselves, or wait, directly or not, for such a task.
    """
    lost = {task.id for task in state.tasks if is_permanent(task)}
    rings = _cyclic(state)
    return lost.union(rings, _blocked(state, rings))


def blocked_through(state: State, task_id: str) -> tuple[str, ...]:
    """Return the failed tasks that a [DEPENDENCY] blocks and that wait, directly or not, for `task_id`.

    They are what a person who retries `task_id` will want back as well; in the order of the chain.
    """
    waiting = _dependents(task for task in state.tasks if task.status == "failed" and _names_dependency(task))
    blocked: dict[str, None] = {}
    queue = deque([task_id])
    while queue:
        for task in waiting.get(queue.popleft(), ()):
            if task.id != task_id and task.id not in blocked:
                blocked[task.id] = None
                queue.append(task.id)
    return tuple(blocked)


def _names_dependency(task: Task) -> bool:
    return any(category_of(text) == "DEPENDENCY" for text in task.error_log)


def _cyclic(state: State) -> dict[str, str]:
    rings = graph.cycle_members(state.tasks)
    if not rings:
        return {}
    return {
        task.id: f"Circular dependency detected: {rings[task.id]}"
        for task in state.tasks
        if task.id in rings and _may_be_unreachable(task)
    }


def _blocked(state: State, unreachable: Iterable[str]) -> dict[str, str]:
    """Return why each task is blocked that depends on an `unreachable` or a permanently failed one."""
    queue = deque([task.id for task in state.tasks if task.status == "failed" and is_permanent(task)])
    queue.extend(unreachable)
    if not queue:
        return {}
    waiting = _dependents(task for task in state.tasks if _may_be_unreachable(task))
    marked = set(queue)
    reasons: dict[str, str] = {}
    while queue:
        cause = queue.popleft()
        for task in waiting.get(cause, ()):
            if task.id not in marked:
                marked.add(task.id)
                reasons[task.id] = f"Blocked by failed {cause}"
                queue.append(task.id)
    return reasons


def _may_be_unreachable(task: Task) -> bool:
    return task.status in ("pending", "failed") and not is_permanent(task)


def _dependents(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Return, for each id that is waited for, the tasks that wait for it."""
    waiting: dict[str, list[Task]] = {}
    for task in tasks:
        for other in task.depends_on:
            waiting.setdefault(other, []).append(task)
    return waiting

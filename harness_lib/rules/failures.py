"""Decide what a failure means for the attempt, the task, and the tasks that depend on it.

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
    """The consequences of a failure of one category.

    `ending`: how the attempt ends; `stops`: whether the session halts until the user has acted.
    """

    ending: Ending
    stops: bool
    summary: str


STRATEGIES: dict[Category, Strategy] = {
    "ENV_SETUP": Strategy(
        ending=Ending.EXCUSED,
        stops=True,
        summary="The user must look if harness-init.sh fails again.",
    ),
    "CONFIG": Strategy(
        ending=Ending.EXCUSED,
        stops=True,
        summary="The user must edit the named field.",
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
    """A task that can never run, and why; `message` has no category."""

    task_id: str
    message: str


def strategy(category: Category) -> Strategy:
    """Return the consequences of a failure of this category."""
    return STRATEGIES[category]


def is_permanent(task: Task) -> bool:
    """Return whether the task has failed and is never retried automatically.

    Its attempts are used up, or one of its errors is a [DEPENDENCY].
    """
    return task.status == "failed" and (task.attempts >= task.max_attempts or _names_dependency(task))


def validate_dependencies(state: State, now: datetime) -> tuple[State, tuple[Finding, ...]]:
    """Return the state with every task that can never run marked `failed`, and the findings.

    First the members of cycles, then, to the fixed point, all tasks that depend on a permanently failed one.
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
    """Return the tasks that cannot be completed any more.

    They have failed for good, or depend, directly or not, on themselves or on such a task.
    """
    lost = {task.id for task in state.tasks if is_permanent(task)}
    cycles = _cyclic(state)
    return lost.union(cycles, _blocked(state, cycles))


def blocked_through(state: State, task_id: str) -> tuple[str, ...]:
    """Return the failed tasks that a [DEPENDENCY] blocks and that depend, directly or not, on `task_id`.

    The user who retries `task_id` will want these back as well; in the order of the chain.
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
    cycles = graph.cycle_members(state.tasks)
    if not cycles:
        return {}
    return {
        task.id: f"Circular dependency detected: {cycles[task.id]}"
        for task in state.tasks
        if task.id in cycles and _may_be_unreachable(task)
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
    """Return, for each id, the tasks that depend on it."""
    waiting: dict[str, list[Task]] = {}
    for task in tasks:
        for other in task.depends_on:
            waiting.setdefault(other, []).append(task)
    return waiting

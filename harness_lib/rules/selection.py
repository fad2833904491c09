"""Choose the next task, and say why another one does not come next.

Validate dependencies first (`failures.validate_dependencies`): tasks that can never run are then marked, not
just passed over. Source: docs/protocol.md, "Task Selection Algorithm"; docs/design.md, "Choosing".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from harness_lib import timestamps, typed
from harness_lib.errors import UsageError
from harness_lib.rules import graph, leases, transitions
from harness_lib.rules.failures import category_of, is_permanent
from harness_lib.task import State, Task

UNPROVEN = "an external edit says that it is completed, or has changed its check since"

Rank = tuple[int, str, float, graph.IdKey]


class Why(NamedTuple):
    """Whether a task may be claimed, and the reasons, one sentence each."""

    eligible: bool
    reasons: tuple[str, ...]


def eligible(state: State) -> Iterator[Task]:
    """Return the tasks that may be claimed, in the order of the list."""
    completed = {task.id for task in state.tasks if task.status == "completed" and task.is_done}
    return (
        task
        for task in state.tasks
        if (task.status == "pending" or (task.status == "failed" and not is_permanent(task)))
        and task.halt is None
        and (not task.depends_on or completed.issuperset(task.depends_on))
    )


def ranked(state: State) -> list[Task]:
    """Return the tasks that may be claimed, the next one first.

    Pending ones by priority, then id; after them failed ones with attempts left by priority, then the oldest
    failure, then id. A failure without a time (of the legacy protocol) is the oldest.
    """
    return sorted(eligible(state), key=_rank)


def pick(state: State) -> Task | None:
    """Return the first of `ranked`, without ranking the rest; None if no task may be claimed."""
    open_ones = list(eligible(state))
    pending = [task for task in open_ones if task.status == "pending"]
    highest = min([task.priority for task in pending], default=None)
    first = {task.id: task for task in pending if task.priority == highest}
    return first[min(first, key=graph.id_key)] if first else min(open_ones, key=_rank, default=None)


def interesting(state: State) -> list[Task]:
    """Return the tasks ordered by interest: in progress, halted, failed, next, completed."""
    turn = {task.id: place for place, task in enumerate(ranked(state))}
    order = {"in_progress": 0, "failed": 2, "pending": 3, "completed": 4}

    def key(task: Task) -> tuple[int, int, graph.IdKey]:
        stands_out = (task.halt or task.unproven) and task.status != "in_progress"
        kind = 1 if stands_out else order[task.status]
        return kind, turn.get(task.id, len(turn)), graph.id_key(task.id)

    return sorted(state.tasks, key=key)


def unproven(state: State) -> list[Task]:
    """Return the tasks whose check must verify that they are completed."""
    return [task for task in state.tasks if task.unproven and transitions.may("confirm", task)]


def why(state: State, task_id: str, now: datetime) -> Why:
    """Explain whether the task may be claimed at `now`. Raises UsageError if there is no such task."""
    task = state.find(task_id)
    if task is None:
        raise UsageError(f"There is no task {task_id!r} in this list.", "See which there are: harness status")
    if task.is_done:
        return Why(eligible=False, reasons=(f"completed at {task.completed_at or 'an unknown time'}",))
    if task.status == "completed":
        return Why(eligible=False, reasons=(f"{UNPROVEN}: harness start has its check run",))
    if task.status == "in_progress":
        return Why(eligible=False, reasons=tuple(_held(task, now)))
    against = tuple(_against(state, task))
    if against:
        return Why(eligible=False, reasons=against)
    return Why(eligible=True, reasons=(_place(state, task),))


def _rank(task: Task) -> Rank:
    retry = task.status == "failed"
    since = timestamps.parse(task.failed_at).timestamp() if retry and task.failed_at else float("-inf")
    return int(retry), task.priority, since, graph.id_key(task.id)


def _held(task: Task, now: datetime) -> Iterator[str]:
    who = f"in progress by {task.claimed_by}" if task.claimed_by else "in progress, claimed by nobody"
    if task.lease_expires_at is None:
        yield who + (f" since {task.claimed_at}" if task.claimed_at else "")
    elif leases.expired(task, now):
        yield f"{who}, whose lease ended at {task.lease_expires_at}: harness recover takes it back"
    else:
        yield f"{who}, leased until {task.lease_expires_at}"
    if task.intent is not None:
        yield f"a {task.intent.action} is under way since {task.intent.at}"
    if task.halt is not None:
        yield f"halted until the user has acted: {task.halt}"


def _against(state: State, task: Task) -> Iterator[str]:
    if task.halt is not None:
        yield f"halted until the user has acted: {task.halt}"
    if task.status == "failed" and task.attempts >= task.max_attempts:
        yield f"attempts used up ({_used(task)}): {typed.harness('retry', task.id)} gives it new ones"
    if task.status == "failed":
        blame = (text for text in task.error_log if category_of(text) == "DEPENDENCY")
        yield from (f"failed for good: {text}" for text in blame)
    cycle = graph.cycle_members(state.tasks).get(task.id)
    if cycle is not None:
        yield f"in a cycle: {cycle}"
    known = {other.id: other for other in state.tasks}
    for other in dict.fromkeys(task.depends_on):
        if other != task.id:
            yield from _missing(other, known.get(other))


def _missing(task_id: str, task: Task | None) -> Iterator[str]:
    if task is None:
        yield f"depends on {task_id}, which is not in the list"
    elif is_permanent(task):
        yield f"depends on {task_id}, which has failed for good"
    elif not task.is_done:
        yield f"waits for {task_id} ({'unproven' if task.unproven else task.status})"


def _place(state: State, task: Task) -> str:
    kind = f"retry, attempts {_used(task)}" if task.status == "failed" else "pending"
    first = pick(state)
    if first is not None and first.id == task.id:
        return f"next: {kind}, {task.priority}"
    order = ranked(state)
    place = next(number for number, other in enumerate(order, 1) if other.id == task.id)
    return f"number {place} of {len(order)} to claim ({kind}, {task.priority}); next is {order[0].id}"


def _used(task: Task) -> str:
    return f"{task.attempts}/{task.max_attempts}"

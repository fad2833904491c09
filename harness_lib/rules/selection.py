"""Choose the next task, say why another one does not come next, and what a failure means for its dependents.

Validate dependencies first (`validate_dependencies`): tasks that can never run are then marked, not just
passed over.
Source: docs/protocol.md, "Task Selection Algorithm" and "Error Handling"; docs/design.md, "Choosing".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from harness_lib import timestamps, typed
from harness_lib.errors import UsageError
from harness_lib.rules import arrows, graph, recovery, transitions
from harness_lib.rules.attempts import Ending, category_of
from harness_lib.task import Category, State, Task
from harness_lib.text import Strings


class Strategy(NamedTuple):
    """How an attempt that failed with one category ends, and why the session then halts ("": it goes on)."""

    ending: Ending
    stop: str = ""


STRATEGIES: dict[Category, Strategy] = {
    "ENV_SETUP": Strategy(Ending.EXCUSED, "The user must look if harness-init.sh fails again."),
    "CONFIG": Strategy(Ending.EXCUSED, "The user must edit the named field."),
    "TASK_EXEC": Strategy(Ending.FAILED),
    "TEST_FAIL": Strategy(Ending.FAILED),
    "TIMEOUT": Strategy(Ending.FAILED),
    "DEPENDENCY": Strategy(Ending.EXCUSED),
    "SESSION_TIMEOUT": Strategy(Ending.FAILED),
}


class Finding(NamedTuple):
    """A task that can never run, and why; `message` has no category."""

    task_id: str
    message: str


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


def blocked_through(state: State, task_id: str) -> Strings:
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


UNPROVEN = "an external edit says that it is completed, or has changed its check since"

Rank = tuple[int, str, float, graph.IdKey]


class Why(NamedTuple):
    """Whether a task may be claimed, and the reasons, one sentence each."""

    eligible: bool
    reasons: Strings


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


def pick(state: State, without: Collection[str] = ()) -> Task | None:
    """Return the first of `ranked` apart from those called `without`, and do not rank the rest.

    None if no task may be claimed.
    """
    if without:
        return min((task for task in eligible(state) if task.id not in without), key=_rank, default=None)
    # Each change asks for its status cache, and the next claim asks about the same list.
    known, first = _picked[0]
    if known is not state:
        if known is None or not _is_as_free(known, state):
            first = min(eligible(state), key=_rank, default=None)
        _picked[0] = (state, first)
    return first


_picked: list[tuple[State | None, Task | None]] = [(None, None)]


def _is_as_free(known: State, state: State) -> bool:
    """Return whether only tasks in progress differ, so that the same ones may be claimed."""
    if len(known.tasks) != len(state.tasks):
        return False
    changed = [(known.tasks[place], state.tasks[place]) for place in state.changed_since(known)]
    return all(
        before.id == now.id and before.status == now.status == "in_progress" for before, now in changed
    )


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
    return [task for task in state.tasks if task.unproven and arrows.may("confirm", task)]


def why(state: State, task_id: str, now: datetime) -> Why:
    """Explain whether the task may be claimed at `now`. Raises UsageError if there is no such task."""
    task = state.find(task_id)
    if not task:
        raise UsageError(f"There is no task {task_id!r} in this list.", "List the tasks: harness status")
    if task.is_done:
        return Why(eligible=False, reasons=(f"completed at {task.completed_at or 'an unknown time'}",))
    if task.status == "completed":
        return Why(eligible=False, reasons=(f"{UNPROVEN}: harness start has its check run",))
    if task.status == "in_progress":
        return Why(eligible=False, reasons=tuple(_held(state, task, now)))
    against = tuple(_against(state, task))
    if against:
        return Why(eligible=False, reasons=against)
    return Why(eligible=True, reasons=(_place(state, task),))


def _rank(task: Task) -> Rank:
    retry = task.status == "failed"
    since = timestamps.parse(task.failed_at).timestamp() if retry and task.failed_at else float("-inf")
    return int(retry), task.priority, since, graph.id_key(task.id)


def _held(state: State, task: Task, now: datetime) -> Iterator[str]:
    who = f"in progress by {task.claimed_by}" if task.claimed_by else "in progress, claimed by nobody"
    if task.lease_expires_at is None:
        who += f" since {task.claimed_at}" if task.claimed_at else ""
        is_stuck = state.session_config.concurrency_mode == "concurrent"
        hand_back = typed.harness("release", task.id)
        yield f"{who}; if nobody works on it, the user can type: {hand_back}" if is_stuck else who
    elif recovery.expired(task, now):
        yield f"{who}, whose lease ended at {task.lease_expires_at}: harness recover takes it back"
    else:
        yield f"{who}, leased until {task.lease_expires_at}"
    if task.intent and task.intent.action == "merge":
        yield f"checked, waits to be merged since {task.intent.at}"
    elif task.intent:
        yield f"a {task.intent.action} is under way since {task.intent.at}"
    if halt := task.halt or _halt_of_worker(state, task):
        yield f"halted until the user has acted: {halt}"


def _halt_of_worker(state: State, task: Task) -> str | None:
    """Return why the session of the worker of `task` stands still for it."""
    about = (each for each in state.sessions or () if each.halt_task == task.id)
    return next((each.halt for each in about if recovery.works_for(task.claimed_by, each.worker)), None)


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
    if not task:
        yield f"depends on {task_id}, which is not in the list"
    elif is_permanent(task):
        yield f"depends on {task_id}, which has failed for good"
    elif not task.is_done:
        yield f"waits for {task_id} ({'unproven' if task.unproven else task.status})"


def _place(state: State, task: Task) -> str:
    kind = f"retry, attempts {_used(task)}" if task.status == "failed" else "pending"
    first = pick(state)
    if first and first.id == task.id:
        return f"next: {kind}, {task.priority}"
    order = ranked(state)
    place = next(number for number, other in enumerate(order, 1) if other.id == task.id)
    return f"number {place} of {len(order)} to claim ({kind}, {task.priority}); next is {order[0].id}"


def _used(task: Task) -> str:
    return f"{task.attempts}/{task.max_attempts}"

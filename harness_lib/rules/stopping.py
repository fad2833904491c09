"""Decide when a session has nothing left to do, or may do no more.

Source: docs/protocol.md, "Stopping Conditions" and "Activation Marker"; docs/design.md, "The Stop hook".
"""

from __future__ import annotations

from harness_lib.rules import rechecks, selection
from harness_lib.rules.failures import is_permanent
from harness_lib.task import Session, State, StopReason, Task


def no_work(state: State) -> StopReason | None:
    """Return why no task can be claimed, or None if one can, or one that is unproven can be proven.

    `done`: all are completed (an empty list too); `waiting`: others work on what is left, or a person must
    act on a halted task first; `blocked`: what is left has failed for good or depends on such a task;
    `recheck_failed`: `done` or `blocked`, but a completed task is red.
    """
    if all(task.is_done for task in state.tasks):
        return "recheck_failed" if rechecks.red(state.tasks) else "done"
    if any(True for _ in selection.eligible(state)) or any(map(_is_doubted, state.tasks)):
        return None
    if any(_is_awaited(task) for task in state.tasks):
        return "waiting"
    return "recheck_failed" if rechecks.red(state.tasks) else "blocked"


def awaits_person(state: State) -> bool:
    """Return whether only a person can free what is left: waiting for other workers would be in vain."""
    return no_work(state) == "waiting" and all(task.status != "in_progress" for task in state.tasks)


def session_spent(state: State, session: Session) -> StopReason | None:
    """Return `max_tasks_per_session` if this session has finished as many attempts; 0 is no limit."""
    limit = state.session_config.max_tasks_per_session
    return "max_tasks_per_session" if 0 < limit <= session.finished_attempts else None


def sessions_spent(state: State) -> StopReason | None:
    """Return `max_sessions` if no further session may start; asked before that one is counted."""
    limit = state.session_config.max_sessions
    return "max_sessions" if 0 < limit <= state.session_count else None


def work_remains(state: State) -> bool:
    """Return True while a task is pending, in progress or retryable.

    A task that can never run counts until validation has recorded that, and so does a halted one: a person
    will come back to it.
    """
    return any(not task.is_done and not is_permanent(task) for task in state.tasks)


def holds_agents(state: State) -> bool:
    """Return whether hooks hold agents: while work remains, a task is red, or a final check is left."""
    if work_remains(state) or any(session.final_check for session in state.sessions or ()):
        return True
    return bool(rechecks.red(state.tasks))


def _is_doubted(task: Task) -> bool:
    return task.status == "completed" and task.unproven


def _is_awaited(task: Task) -> bool:
    if task.status == "in_progress":
        return True
    return task.status != "completed" and task.halt is not None and not is_permanent(task)

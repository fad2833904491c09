"""Name the command that brings a task nearer to being completed, and the root cause of what blocks it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness_lib import typed
from harness_lib.checks import check_of
from harness_lib.core import ownership, sessions, trust
from harness_lib.core.context import Context
from harness_lib.rules import attempts, recovery, selection
from harness_lib.state.api import Questions
from harness_lib.task import Task

RUN = "harness run"
LOG_READ = 50
_LACKED = re.compile(r"\[SESSION-(\d+)\] ERROR \[(?!TEST_FAIL)[A-Z_]+\] the run ended: (.*)")


def log_lines(ctx: Context) -> list[str]:
    """Return the last lines of the log of a list that was just asked; none if it may not be read."""
    try:
        return ctx.store.log_tail(LOG_READ, asked=True)
    except PermissionError:
        return []


def remedy(ctx: Context, questions: Questions, task: Task) -> str | None:
    """Return the command that brings `task` nearer to being completed; None if it is completed."""
    if task.is_done:
        return None
    if task.status == "completed":
        return sessions.unless_held(questions, ctx, "harness start")
    if task.status == "in_progress":
        return _in_progress(ctx, questions, task)
    if task.halt is not None:
        return _halted(ctx, task)
    return _waiting(ctx, questions, task)


def _waiting(ctx: Context, questions: Questions, task: Task) -> str | None:
    rings = questions.rings()
    if task.id in rings:
        return typed.harness("edit", task.id, "--depends-on", "ID")
    cause = root_cause(questions, task)
    if cause is not None:
        return typed.harness("show" if cause in rings else "retry", cause)
    awaited = next((other.id for other in questions.tasks(task.depends_on) if not other.is_done), None)
    return typed.harness("show", awaited) if awaited else take(ctx, questions, task)


def take(ctx: Context, questions: Questions, task: Task) -> str | None:
    """Return how the caller can claim `task`; a caller that holds another task ends that first."""
    held = questions.held_by(ctx.owner.worker)
    if held is not None:
        return ownership.finish_command(ctx, held, sessions.mine(questions, ctx))
    if not trust.knows(ctx, task):
        return "harness check"
    return sessions.unless_held(questions, ctx, typed.harness("claim", task.id))


def _in_progress(ctx: Context, questions: Questions, task: Task) -> str | None:
    if task.halt is not None:
        return _halted(ctx, task)
    if recovery.is_mine(task, ctx.owner.worker):
        return ownership.finish_command(ctx, task, sessions.mine(questions, ctx))
    if task.claimed_by is None:
        return sessions.unless_held(questions, ctx, sessions.START)
    if recovery.expired(task, questions.now):
        return sessions.unless_held(questions, ctx, "harness recover")
    return "harness status"


def _halted(ctx: Context, task: Task) -> str:
    if attempts.asks_a_person(task):
        return typed.harness("accept", task.id)
    if not check_of(task).is_given and not ownership.decides_on_caller(ctx, task):
        return typed.give_check(task.id)
    return typed.harness("show", task.id)


def root_cause(questions: Questions, task: Task) -> str | None:
    """Return the permanently failed task that keeps `task` from running: itself, or one it depends on.

    For a blocked task it is the one that blocks it: retrying that one helps both.
    """
    seen: set[str] = set()
    waiting = [task.id]
    cause: str | None = None
    while waiting:
        current = questions.task(waiting.pop())
        if current is None or current.id in seen:
            continue
        seen.add(current.id)
        if selection.is_permanent(current):
            cause = current.id
            # Its dependencies that failed for good come before it.
            waiting = []
        waiting += [other.id for other in questions.tasks(current.depends_on) if not other.is_done]
    return cause


def lacked(questions: Questions, log: Sequence[str]) -> list[str]:
    """Return what the user must do before a run can go on, from the end of the `log`.

    "" if another session was opened since, or no work is left.
    """
    matches = [match for line in log if (match := _LACKED.search(line))]
    if not matches or int(matches[-1][1]) != questions.session_count or not questions.work_remains():
        return []
    return [f"the last run ended: {matches[-1][2].removesuffix('.')}; then: {RUN}"]


def goes_on(ctx: Context, questions: Questions, log: Sequence[str]) -> bool:
    """Return whether another run would continue what the last one has left."""
    killed = any(sessions.was_killed_run(each, questions, ctx) for each in questions.sessions())
    return killed or bool(lacked(questions, log))

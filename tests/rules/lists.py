"""Task lists for the tests of the rules: a fixed moment, short spellings, and any list at all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from hypothesis import strategies as st

from harness_lib import timestamps
from harness_lib.task import PRIORITIES, STATUSES, Recheck, State, Task, Validation

NOW = datetime(2025, 7, 1, 10, 0, 0, tzinfo=timezone.utc)
STAMP = "2025-07-01T10:00:00Z"
BLOCKED = "[DEPENDENCY] Blocked by failed task-000"


def ago(seconds: int) -> str:
    """Return the stamp so many seconds before NOW."""
    return timestamps.render(NOW - timedelta(seconds=seconds))


def state(*tasks: Task) -> State:
    return State(tasks=tasks)


def waiting(**depends_on: str) -> tuple[Task, ...]:
    """Return pending tasks, each with the ids it waits for, divided by blanks."""
    return tuple(Task(task_id, depends_on=tuple(others.split())) for task_id, others in depends_on.items())


@st.composite
def tasks(draw: st.DrawFn, ids: Sequence[str], task_id: str) -> Task:
    status = draw(st.sampled_from(STATUSES))
    return Task(
        task_id,
        status=status,
        priority=draw(st.sampled_from(PRIORITIES)),
        depends_on=tuple(draw(st.lists(st.sampled_from(ids), max_size=3))),
        attempts=draw(st.integers(0, 3)),
        max_attempts=draw(st.integers(1, 3)),
        error_log=tuple(draw(st.lists(st.sampled_from((BLOCKED, "[TEST_FAIL] no")), max_size=1))),
        claimed_by="somebody" if status == "in_progress" else None,
        failed_at=draw(st.none() | st.integers(0, 99).map(ago)) if status == "failed" else None,
        halt=draw(st.sampled_from((None, None, None, "CONFIG"))),
    )


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any list of up to eight tasks; every dependency names one of them."""
    ids = [f"t{number}" for number in range(draw(st.integers(1, 8)))]
    return State(tasks=tuple(draw(tasks(ids, task_id)) for task_id in draw(st.permutations(ids))))


def done(name: str, check: str | None = "true", found: Recheck | None = None, **fields: object) -> Task:
    """Return a completed task with this check, and what its last re-check has found."""
    task = Task(name, status="completed", validation=Validation(check), recheck=found)
    return task._replace(**fields)  # type: ignore[arg-type]

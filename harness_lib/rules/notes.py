"""Choose whose notes a task is told."""

from __future__ import annotations

from collections.abc import Iterable

from harness_lib.task import Task


def concerning(tasks: Iterable[Task], task_id: str) -> list[Task]:
    """Return the tasks with notes for `task_id`: itself, then what it depends on, then those done last."""
    listed = tuple(tasks)
    needs = next((task.depends_on for task in listed if task.id == task_id), ())
    noted = [other for other in listed if other.notes and (other.is_done or other.id == task_id)]
    return sorted(noted, key=lambda t: (t.id == task_id, t.id in needs, t.completed_at or ""), reverse=True)

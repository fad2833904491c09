"""The schema's second opinion on a list that somebody else has touched: once in a process for each task.

`codec` has read the list strictly before. To ask the schema about thousands of tasks takes longer than all
else that is done under the lock, and where agents following the prose write between any two of our changes,
others would wait for it half a minute and be turned away.
Source: design section 3, "`jsonschema` checks … every state that somebody else touched".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness_lib.state import schema
from harness_lib.state.shapes import Problem
from harness_lib.task import Task


class Opinion:
    """Remembers which tasks the schema has passed."""

    def __init__(self) -> None:
        self._passed: dict[str, Task] = {}

    def problems(self, document: Mapping[str, Any], tasks: Sequence[Task]) -> list[Problem]:
        """Return what is wrong with `document`, which was decoded to `tasks`; as `schema.problems` does."""
        if self._is_good(document, tasks):
            self._passed = {task.id: task for task in tasks}
            return []
        return schema.problems(document)

    def _is_good(self, document: Mapping[str, Any], tasks: Sequence[Task]) -> bool:
        if schema.shell_problems(document):
            return False
        sessions = enumerate(document.get("sessions") or ())
        if any(schema.session_problems(session, index) for index, session in sessions):
            return False
        new = (index for index, task in enumerate(tasks) if self._passed.get(task.id) != task)
        return not any(schema.task_problems(document["tasks"][index], index) for index in new)


OPINION = Opinion()

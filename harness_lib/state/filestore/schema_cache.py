"""Remember which tasks of a list that somebody else has touched the JSON Schema has already passed.

`codec` has read the list strictly before. To ask the schema about thousands of tasks takes longer than all
else that is done under the lock, and where agents following the prose write between any two of our changes,
others would wait for it half a minute and be turned away. So nobody asks again about what this process has
asked about before, or what stands in the list that we wrote last, which the schema has passed.
Source: docs/design.md, "Reading is strict".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness_lib.state import schema
from harness_lib.state.record.kinds import Problem
from harness_lib.task import Task

# To read what we wrote last takes as long as to ask about so many.
MANY = 200

Earlier = Callable[[], Sequence[Task]]


class Opinion:
    """Remembers which tasks the schema has passed."""

    def __init__(self) -> None:
        self._passed: dict[str, Task] = {}

    def problems(
        self, document: Mapping[str, Any], tasks: Sequence[Task], earlier: Earlier = tuple
    ) -> list[Problem]:
        """Return what is wrong with `document`, which was decoded to `tasks`; as `schema.problems` does.

        `earlier` reads the tasks of the list that we wrote last.
        """
        if self._is_good(document, tasks, earlier):
            self._passed = {task.id: task for task in tasks}
            return []
        return schema.problems(document)

    def _is_good(self, document: Mapping[str, Any], tasks: Sequence[Task], earlier: Earlier) -> bool:
        if schema.shell_problems(document):
            return False
        sessions = enumerate(document.get("sessions") or ())
        if any(schema.session_problems(session, index) for index, session in sessions):
            return False
        new = _others(enumerate(tasks), self._passed)
        if len(new) > MANY:
            new = _others(new, {task.id: task for task in earlier()})
        return not any(schema.task_problems(document["tasks"][index], index) for index, _ in new)


def _others(numbered: Iterable[tuple[int, Task]], known: Mapping[str, Task]) -> list[tuple[int, Task]]:
    return [(index, task) for index, task in numbered if known.get(task.id) != task]


OPINION = Opinion()

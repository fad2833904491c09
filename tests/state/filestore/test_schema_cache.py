"""The schema is asked about every task that somebody else has written, and about no task twice."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.state import load, reading, schema
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, State, Task

TASKS = (Task("a", "One"), Task("b", "Two", depends_on=("a",)))
LIST = State(tasks=TASKS, sessions=(Session(1, "me", "host"),))


def listed(**changes: Any) -> dict[str, Any]:
    return {**reading.encode(LIST), **changes}


def with_title(title: object) -> dict[str, Any]:
    """Return the list with that title of its second task."""
    first, second = reading.encode(LIST)["tasks"]
    return listed(tasks=[first, {**second, "title": title}])


@pytest.mark.parametrize(
    "broken",
    [
        with_title(7),
        listed(version=3),
        listed(sessions=[{"number": -1}]),
        listed(sessions=[{"number": 1, "worker": "w", "host": "h"}, {"number": -1}]),
        listed(last_session="soon"),
    ],
    ids=["task", "version", "session", "second session", "shell"],
)
def test_what_is_wrong_is_told_as_by_the_schema(broken: dict[str, Any]) -> None:
    problems = schema.problems_of_new(broken, (TASKS[0], TASKS[1]._replace(title="New")), TASKS)

    assert problems
    assert problems == schema.problems(broken)


def test_a_task_that_we_have_written_is_not_asked_about() -> None:
    assert schema.problems_of_new(listed(), TASKS, ()) == []
    # The task is the same, so nobody looks at what stands in the document.
    assert schema.problems_of_new(with_title(7), TASKS, TASKS) == []
    assert schema.problems_of_new(with_title(7), TASKS, TASKS[:1]) == schema.problems(with_title(7))
    assert schema.problems_of_new(with_title(7), TASKS, TASKS[1:]) == []


def test_what_we_wrote_last_is_read_from_its_generation(store: Store, root: Root) -> None:
    newest = load.newest(root)
    assert newest is not None
    assert newest.state.tasks == store.whole().tasks

    for path in root.generations.iterdir():
        path.write_text("{", "ascii")

    assert load.newest(root) is None

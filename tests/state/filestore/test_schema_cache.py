"""The schema is asked about every task that somebody else has written, and about no task twice."""

from __future__ import annotations

from typing import Any

import pytest

from harness_lib.state import codec, schema
from harness_lib.state.filestore import load
from harness_lib.state.filestore.store import Store
from harness_lib.state.schema import MANY, Opinion
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, State, Task

TASKS = (Task("a", "One"), Task("b", "Two", depends_on=("a",)))
LIST = State(tasks=TASKS, sessions=(Session(1, "me", "host"),))


def document(**changes: Any) -> dict[str, Any]:
    return {**codec.encode(LIST), **changes}


def with_title(title: object) -> dict[str, Any]:
    """Return the list with that title of its second task."""
    first, second = codec.encode(LIST)["tasks"]
    return document(tasks=[first, {**second, "title": title}])


@pytest.mark.parametrize("asked_before", [False, True])
@pytest.mark.parametrize(
    "broken",
    [with_title(7), document(version=3), document(sessions=[{"number": -1}]), document(last_session="soon")],
    ids=["task", "version", "session", "shell"],
)
def test_what_is_wrong_is_told_as_by_the_schema(broken: dict[str, Any], *, asked_before: bool) -> None:
    opinion = Opinion()
    if asked_before:
        assert opinion.problems(document(), TASKS) == []

    problems = opinion.problems(broken, (TASKS[0], TASKS[1]._replace(title="New")))

    assert problems
    assert problems == schema.problems(broken)


def test_a_task_that_has_passed_is_not_asked_about_again() -> None:
    opinion = Opinion()
    assert opinion.problems(document(), TASKS) == []

    # The task is the same, so nobody looks at what stands in the document.
    assert opinion.problems(with_title(7), TASKS) == []


def test_of_many_tasks_those_are_asked_about_that_we_have_not_written() -> None:
    tasks = tuple(Task(f"t{number}") for number in range(MANY + 2))
    documents = codec.encode(State(tasks=tasks))
    for index in (0, 1):
        documents["tasks"][index]["title"] = 7

    # Both are broken; the first is said to be as we wrote it.
    problems = Opinion().problems(documents, tasks, lambda: (tasks[0], *tasks[2:]))
    assert "tasks[1].title" in [problem.path for problem in problems]
    assert Opinion().problems(documents, tasks, lambda: tasks) == []


def test_of_few_tasks_nobody_reads_what_we_wrote_last() -> None:
    tasks = tuple(Task(f"t{number}") for number in range(MANY))
    asked: list[None] = []

    def earlier() -> tuple[Task, ...]:
        asked.append(None)
        return ()

    opinion = Opinion()
    assert opinion.problems(codec.encode(State(tasks=tasks)), tasks, earlier) == []
    assert not asked
    more = tuple(task._replace(title="New") for task in (*tasks, Task("x")))
    assert opinion.problems(codec.encode(State(tasks=more)), more, earlier) == []
    assert len(asked) == 1


def test_each_session_and_task_is_asked_about_in_its_place() -> None:
    """Where a broken one stands says nothing about the others."""
    sessions = [{"number": 1, "worker": "w", "host": "h"}, {"number": -1, "worker": "w", "host": "h"}]
    assert Opinion().problems(document(sessions=sessions), TASKS)
    assert Opinion().problems(document(sessions=None), TASKS) == []
    opinion = Opinion()
    assert opinion.problems(document(), TASKS) == []
    new = TASKS[1]._replace(title="New")
    # Only the second is new: the first is not asked about, whatever stands there.
    first, second = codec.encode(LIST)["tasks"]
    assert opinion.problems(document(tasks=[{**first, "title": 7}, second]), (TASKS[0], new)) == []
    assert opinion.problems(document(tasks=[first, {**second, "title": 7}]), (TASKS[0], TASKS[1]))


def test_what_we_wrote_last_is_read_from_its_generation(store: Store, root: Root) -> None:
    assert load.newest_tasks(root) == store.read().state.tasks

    for path in root.generations.iterdir():
        path.write_text("{", "ascii")

    assert load.newest_tasks(root) == ()


def test_a_valid_example_has_no_problems(valid: Any) -> None:
    assert Opinion().problems(valid, codec.decode(valid).tasks) == []

"""The schema is asked about every task that somebody else has written, and about no task twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness_lib.state import codec, schema
from harness_lib.state.opinion import Opinion
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

    found = opinion.problems(broken, (TASKS[0], replace(TASKS[1], title="New")))

    assert found
    assert found == schema.problems(broken)


def test_a_task_that_has_passed_is_not_asked_about_again() -> None:
    opinion = Opinion()
    assert opinion.problems(document(), TASKS) == []

    # The task is the same, so nobody looks at what stands in the document.
    assert opinion.problems(with_title(7), TASKS) == []


def test_a_valid_example_has_no_problems(valid: Any) -> None:
    assert Opinion().problems(valid, codec.decode(valid).tasks) == []

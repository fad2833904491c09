"""What `harness check` finds in the file of the list, to the letter; it writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from harness_lib.rules.selection import UNPROVEN
from harness_lib.state import schema
from harness_lib.state.api import Examined
from harness_lib.state.reading import Problem
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.state.clock import Noon, made_at_noon

NAME = "harness-tasks.json"
NEWEST = "the newest good state is .harness/generations/0000000001.json with 3 tasks"
TORN = "is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"


@pytest.fixture
def store(root: Root) -> Store:
    return made_at_noon(root, (Task("a", depends_on=("b",)), Task("b", depends_on=("a",)), Task("c")))


def problems_in(examined: Examined) -> list[str]:
    return [f"{problem.path}: {problem.message}" for problem in examined.problems]


def edit(root: Root, **fields: object) -> None:
    """Change the third task by hand, and let the first two wait for nothing."""
    document = json.loads(root.state.read_bytes())
    for task in document["tasks"]:
        task["depends_on"] = []
    document["tasks"][2] |= fields
    root.state.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda root: root.state.unlink(), f": {NAME} is missing; {NEWEST}"),
        (lambda root: root.state.write_text("{"), f": {NAME} {TORN}; {NEWEST}"),
        (lambda root: root.state.write_text('{"a": 1}'), f": {NAME} has no tasks in it; {NEWEST}"),
    ],
    ids=["missing", "torn", "emptied"],
)
def test_of_a_lost_list_it_is_told_what_a_repair_would_bring_back(
    store: Store, root: Root, damage: Callable[[Root], object], problem: str
) -> None:
    damage(root)

    examined = store.examine()

    assert (problems_in(examined), *examined[1:]) == ([problem], None, True, False)


def test_where_nothing_is_left_that_is_told(root: Root) -> None:
    lost = Problem("", f"{NAME} is missing; no good earlier state is left")
    assert Store(root).examine() == Examined((lost,))


def test_a_list_in_order_is_answered_for_and_a_ring_is_named(store: Store, root: Root) -> None:
    examined = store.examine()

    assert problems_in(examined) == ["tasks: cycle: a -> b -> a"]
    assert (examined.is_lost, examined.is_only_unproven) == (False, False)
    edit(root)
    examined = store.examine()
    assert problems_in(examined) == []
    assert examined.questions is not None
    assert (examined.questions.now, examined.questions.counts().total) == (Noon().now(), 3)


def test_what_nothing_proves_is_named_and_is_no_other_problem(store: Store, root: Root) -> None:
    edit(root, status="completed")

    examined = store.examine()

    assert problems_in(examined) == [f"tasks[2].status: c: {UNPROVEN}; harness start has its check run"]
    assert examined.is_only_unproven
    assert examined.questions is not None


def test_a_key_that_stands_twice_is_told(store: Store, root: Root) -> None:
    root.state.write_text('{"tasks": [], "tasks": []}')

    examined = store.examine()

    assert problems_in(examined) == ["tasks: stands 2 times; only one can be meant"]
    assert (examined.questions, examined.is_lost) == (None, False)


def test_what_only_the_schema_refuses_is_told_of_what_somebody_else_wrote_and_of_that_alone(
    store: Store, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "problems", lambda _document: [Problem("tasks[2].title", "is poison")])
    told_of_ours = problems_in(store.examine())

    edit(root, title="Poison")

    assert problems_in(store.examine()) == ["tasks[2].title: is poison"]
    assert told_of_ours == ["tasks: cycle: a -> b -> a"]

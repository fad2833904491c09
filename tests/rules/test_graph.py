"""The rings among tasks, and the order of ids."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from harness_lib.rules import graph
from harness_lib.task import State, Task
from tests.rules.lists import states

IDS = st.text(alphabet="at-0129٣²", max_size=6)


def _reaches(edges: dict[str, list[str]], start: str) -> set[str]:
    reached: set[str] = set()
    stack = list(edges[start])
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            stack.extend(edges[node])
    return reached


@given(states())
def test_the_rings_are_of_the_tasks_that_reach_themselves_in_any_order(before: State) -> None:
    open_ones = {task.id: task for task in before.tasks if task.status != "completed"}
    edges = {
        name: [each for each in task.depends_on if each in open_ones] for name, task in open_ones.items()
    }

    members, rings = graph.cycle_members(before.tasks), graph.cycles(before.tasks)

    assert set(members) == {task_id for task_id in edges if task_id in _reaches(edges, task_id)}
    for task_id, text in members.items():
        ring = text.split(" -> ")
        assert task_id in ring
        assert ring[0] == ring[-1] == min(ring, key=graph.id_key)
        assert len(set(ring)) == len(ring) - 1
        assert all(after in edges[before] for before, after in pairwise(ring))
    knots = {
        frozenset(_reaches(edges, ring[0])) & {n for n in edges if ring[0] in _reaches(edges, n)}
        for ring in rings
    }
    assert len(knots) == len(rings)
    assert frozenset().union(*knots) == set(members)
    assert graph.cycles(reversed(before.tasks)) == rings


def test_a_ring_of_thousands_is_described_in_a_few_words() -> None:
    ring = tuple(Task(f"t{n}", depends_on=(f"t{(n + 1) % 5000}",)) for n in range(5000))

    members = graph.cycle_members(ring)

    assert len(members) == 5000
    assert members["t2500"].startswith("t0 -> t1 -> ")
    assert "(4991 more)" in members["t2500"]


def test_of_a_ring_at_least_two_are_left_out() -> None:
    letters = tuple("abcdefghijkl")

    assert graph.describe(letters[:11]) == " -> ".join(letters[:11])
    assert graph.describe(letters) == " -> ".join((*letters[:8], "(2 more)", *letters[-2:]))


def test_numbers_in_ids_count_as_numbers() -> None:
    ids = ["task-1000", "t10", "task-999", "t2", "task-001", "b", "t", "a10b2", "a10b1", "9"]

    assert sorted(ids, key=graph.id_key) == [
        "9", "a10b1", "a10b2", "b", "t", "t2", "t10", "task-001", "task-999", "task-1000",
    ]  # fmt: skip
    # A number that no int can hold.
    assert graph.id_key("9" * 5000) < graph.id_key("1" + "0" * 5000)


@example(["t1", "t01", "t001", "t", "t0"])
@given(st.lists(IDS, unique=True))
def test_the_order_of_ids_is_total(ids: list[str]) -> None:
    assert len({graph.id_key(task_id) for task_id in ids}) == len(ids)

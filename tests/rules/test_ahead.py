"""What is left of a list: all that can still be done, in no fewer rounds than its dependencies need."""

from __future__ import annotations

import pytest
from hypothesis import given

from harness_lib.rules import selection, stats
from harness_lib.rules.stats import Ahead
from harness_lib.task import State, Task
from tests.rules.lists import state, states, waiting


@pytest.mark.parametrize(
    ("before", "left"),
    [
        pytest.param(state(), Ahead(0, 0), id="nothing"),
        pytest.param(state(*waiting(a="b", b="c", c="", d="")), Ahead(4, 3), id="a chain and another"),
        pytest.param(state(*waiting(a="b", b="a", c="b", d="")), Ahead(1, 1), id="in a ring and behind it"),
        pytest.param(
            state(
                Task("a", status="in_progress", depends_on=("b",)),
                Task("b", status="in_progress", depends_on=("a",)),
            ),
            Ahead(2, 2),
            id="a ring that is worked on",
        ),
    ],
)
def test_what_is_left(before: State, left: Ahead) -> None:
    assert stats.of(before) == left


@pytest.mark.parametrize(
    ("left", "workers", "rounds"), [(Ahead(5, 1), 2, 3), (Ahead(5, 4), 2, 4), (Ahead(0, 0), 3, 0)]
)
def test_the_busiest_worker_has_so_many_rounds(left: Ahead, workers: int, rounds: int) -> None:
    assert left.rounds(workers) == rounds


@given(states())
def test_with_workers_enough_it_takes_as_many_rounds_as_the_chain_is_long(before: State) -> None:
    """Let every task that may run be completed in each round, until nothing may."""
    open_ones = (task._replace(halt=None, unproven=False) for task in before.tasks)
    free = tuple(task for task in open_ones if task.status != "in_progress")
    known = {task.id for task in free}
    remaining = state(
        *(task._replace(depends_on=tuple(known.intersection(task.depends_on))) for task in free)
    )
    left, lost = stats.of(remaining), selection.hopeless(remaining)

    done = rounds = 0
    while ready := {task.id for task in selection.eligible(remaining)} - lost:
        remaining = state(
            *(task._replace(status="completed") if task.id in ready else task for task in remaining.tasks)
        )
        done, rounds = done + len(ready), rounds + 1

    assert left == Ahead(done, rounds)

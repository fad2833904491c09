"""What is left of a list: all that can still be done, in no fewer rounds than its dependencies need."""

from __future__ import annotations

import pytest
from hypothesis import given

from harness_lib.rules import ahead, failures, selection
from harness_lib.rules.ahead import Ahead
from harness_lib.task import State, Task
from tests.rules.lists import BLOCKED, state, states, waiting


@pytest.mark.parametrize(
    ("before", "left"),
    [
        pytest.param(state(), Ahead(0, 0), id="nothing"),
        pytest.param(state(*waiting(a="", b="", c="")), Ahead(3, 1), id="side by side"),
        pytest.param(state(*waiting(a="b", b="c", c="", d="")), Ahead(4, 3), id="a chain and another"),
        pytest.param(state(*waiting(a="", b="a", c="a", d="b c")), Ahead(4, 3), id="a diamond"),
        pytest.param(
            state(Task("a", status="completed"), *waiting(b="a", c="b")), Ahead(2, 2), id="begun already"
        ),
        pytest.param(
            state(Task("a", status="failed", error_log=(BLOCKED,)), *waiting(b="a", c="b", d="")),
            Ahead(1, 1),
            id="behind what has failed for good",
        ),
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
    assert ahead.of(before) == left


@pytest.mark.parametrize(
    ("left", "workers", "rounds"), [(Ahead(5, 1), 2, 3), (Ahead(5, 4), 2, 4), (Ahead(0, 0), 3, 0)]
)
def test_the_busiest_worker_has_so_many_rounds(left: Ahead, workers: int, rounds: int) -> None:
    assert left.rounds(workers) == rounds


@given(states())
def test_with_workers_enough_it_takes_as_many_rounds_as_the_chain_is_long(before: State) -> None:
    """Let every task that may run be completed in each round, until nothing may."""
    remaining = before._replace(
        tasks=tuple(task._replace(halt=None) for task in before.tasks if not _runs(task)),
    )
    remaining = remaining._replace(
        tasks=tuple(task._replace(depends_on=_known(remaining, task)) for task in remaining.tasks)
    )
    left, lost = ahead.of(remaining), failures.hopeless(remaining)

    done = rounds = 0
    while ready := {task.id for task in selection.eligible(remaining)} - lost:
        remaining = remaining._replace(
            tasks=tuple(t._replace(status="completed") if t.id in ready else t for t in remaining.tasks),
        )
        done, rounds = done + len(ready), rounds + 1

    assert left == Ahead(done, rounds)


def _runs(task: Task) -> bool:
    return task.status == "in_progress"


def _known(whole: State, task: Task) -> tuple[str, ...]:
    return tuple(other for other in task.depends_on if whole.find(other))

"""Which task is a repair is said by its record, whatever its title is."""

from __future__ import annotations

import pytest

from harness_lib.runs import final_check
from harness_lib.state.memorystore.rows import Rows, RowsAnswers
from harness_lib.system.clock import SYSTEM
from harness_lib.task import Task, Validation

DONE = Task("task-001", "Do it", status="completed", validation=Validation("true"), completed_at="2025-07-01")


def test_a_repair_that_has_failed_is_not_tried_by_another_one() -> None:
    failed = DONE._replace(id="task-002", status="failed", attempts=3, repairs="task-001")
    rows = Rows()
    for task in (DONE, failed):
        rows.put(task)

    assert final_check._is_repaired(RowsAnswers(rows, SYSTEM.now()), ("true", None))


@pytest.mark.parametrize(
    ("title", "repairs", "is_repaired"),
    [
        ("Repair what a later task broke: Do it", None, False),
        ("Put it right", "task-001", True),
    ],
)
def test_a_title_makes_no_repair(title: str, repairs: str | None, is_repaired: bool) -> None:
    other = DONE._replace(id="task-002", title=title, repairs=repairs, completed_at="2025-07-02")
    rows = Rows()
    for task in (DONE, other):
        rows.put(task)
    questions = RowsAnswers(rows, SYSTEM.now())
    assert final_check._is_repaired(questions, ("true", None)) is is_repaired

"""Whose notes a task is told, and in which order."""

from __future__ import annotations

from harness_lib.rules import attempts
from harness_lib.task import Task

EARLY, LATE = "2025-07-01T10:00:00Z", "2025-07-02T10:00:00Z"


def _done(name: str, at: str | None, *said: str) -> Task:
    return Task(name, status="completed", completed_at=at, notes=said)


def test_first_its_own_then_of_what_it_needs_then_of_what_was_done_last() -> None:
    tasks = [
        _done("never", None, "x"),
        _done("early", EARLY, "x"),
        _done("late", LATE, "x"),
        _done("needed-early", EARLY, "x"),
        _done("needed-late", LATE, "x"),
        Task("mine", depends_on=("needed-early", "needed-late"), notes=("x",)),
    ]

    order = [task.id for task in attempts.concerning(iter(tasks), "mine")]

    assert order == ["mine", "needed-late", "needed-early", "late", "early", "never"]


def test_who_has_none_and_who_is_not_done_tells_nothing() -> None:
    tasks = [_done("silent", LATE), Task("open", notes=("x",)), _done("done", EARLY, "x"), Task("mine")]

    assert attempts.concerning(tasks, "mine") == [tasks[2]]
    assert attempts.concerning(tasks, "nobody") == [tasks[2]]

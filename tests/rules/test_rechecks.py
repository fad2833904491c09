"""Which checks are due again, and which tasks are red."""

from __future__ import annotations

import pytest

from harness_lib.rules import rechecks
from harness_lib.task import Excuse, Recheck, Task, Validation
from tests.rules.lists import done

NEW, OLD = "b" * 40, "a" * 40


def failed(at: str, excuse: Excuse | None = None) -> Recheck:
    return Recheck(NEW, passed=False, at=at, excuse=excuse)


def test_what_has_not_run_on_this_content_is_due_and_then_what_failed_there() -> None:
    passed, late, early = Recheck(NEW, passed=True), failed("2025-07-02"), failed("2025-07-01", "elsewhere")
    tasks = [
        done("new"),
        done("old", found=Recheck(OLD, passed=True)),
        done("good", found=passed),
        done("late", found=late),
        done("early", found=early),
        done("no check", " "),
        Task("pending", validation=Validation("true")),
        done("unproven", unproven=True),
    ]

    def ids(of: list[Task]) -> list[str]:
        return [task.id for task in rechecks.due(of, NEW.__eq__)]

    assert ids(tasks) == ["new", "old"]
    assert ids(tasks[2:]) == ["early", "late"]
    assert ids([done("good", found=passed)]) == []


@pytest.mark.parametrize(
    ("task", "is_red", "words"),
    [
        (done("a"), False, "not re-checked"),
        (done("a", found=Recheck(NEW, passed=True)), False, "checked at bbbbbbbbbbbb"),
        (done("a", found=failed("")), True, "its check fails at bbbbbbbbbbbb"),
        (done("a", found=failed("", "not_reproducible")), False, "not reproducible at bbbbbbbbbbbb"),
        (
            done("a", found=failed("", "elsewhere")),
            False,
            "finished elsewhere: its commit is not in the history of bbbbbbbbbbbb",
        ),
        (done("a", found=failed(""), unproven=True), False, "its check fails at bbbbbbbbbbbb"),
    ],
)
def test_a_task_is_red_where_its_check_failed_and_nothing_excuses_it(
    task: Task, words: str, *, is_red: bool
) -> None:
    assert rechecks.is_red(task) is is_red
    assert rechecks.words(task) == words

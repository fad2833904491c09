"""A re-check that failed makes a task red, unless something excuses it; and which re-checks are due."""

from __future__ import annotations

import pytest

from harness_lib.rules import rechecks
from harness_lib.task import Excuse, Recheck, Task, Validation
from tests.rules.lists import STAMP, ago, done

NEW, OLD = "b" * 40, "a" * 40
PASSED = Recheck(NEW, passed=True)


def failed(at: str, excuse: Excuse | None = None) -> Recheck:
    return Recheck(NEW, passed=False, at=at, excuse=excuse)


def test_what_has_not_run_on_this_content_is_due_and_then_what_failed_there() -> None:
    late, early = failed("2025-07-02"), failed("2025-07-01", "elsewhere")
    tasks = [
        done("new"),
        done("old", found=Recheck(OLD, passed=True)),
        done("good", found=PASSED),
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
    assert ids([done("good", found=PASSED)]) == []
    assert [task.id for task in rechecks.red(tasks)] == ["late"]


@pytest.mark.parametrize(
    ("task", "is_red", "words"),
    [
        (done("a"), False, "not re-checked"),
        (done("a", found=PASSED), False, "checked at bbbbbbbbbbbb"),
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
def test_a_task_is_red_where_its_check_failed_unexcused(task: Task, words: str, *, is_red: bool) -> None:
    assert rechecks.is_red(task) is is_red
    assert rechecks.words(task) == words


@pytest.mark.parametrize(
    ("task", "since", "awaited"),
    [
        (done("a", completed_at=STAMP), STAMP, True),
        (done("a", completed_at=ago(1)), STAMP, False),
        (done("a"), None, True),
        (done("a"), STAMP, False),
        (done("a", completed_at=STAMP, found=PASSED), None, False),
        (done("a", None, completed_at=STAMP), None, False),
    ],
)
def test_a_session_awaits_the_re_checks_of_its_own(task: Task, since: str | None, *, awaited: bool) -> None:
    assert rechecks.are_awaited([done("old", found=PASSED), task], since) is awaited


def test_files_that_git_does_not_keep_and_checks_need_are_named_once() -> None:
    tasks = [done("a", found=PASSED._replace(missing=(".env", "x"))), done("b")]
    tasks.append(done("c", found=PASSED._replace(missing=("y", ".env"))))

    assert rechecks.needed(tasks) == [".env", "x", "y"]


def test_tasks_with_the_same_check_in_the_same_place_share_a_run() -> None:
    assert rechecks.key(done("a", "make")) == rechecks.key(done("b", "make")) == ("make", None)
    assert rechecks.key(Task("a", validation=Validation("make", cwd="sub"))) == ("make", "sub")

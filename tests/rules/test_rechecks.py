"""Which completed tasks are checked again, by which commits, and what follows from that."""

from __future__ import annotations

import pytest

from harness_lib.rules import rechecks
from harness_lib.rules.rechecks import Commit, History
from harness_lib.task import Excuse, HeldOut, Recheck, Task, Validation
from tests.rules.lists import STAMP, ago, done

NEW, OLD = "b" * 40, "a" * 40
PASSED = Recheck(NEW, passed=True)


def failed(at: str, excuse: Excuse | None = None) -> Recheck:
    return Recheck(NEW, passed=False, at=at, excuse=excuse)


def test_a_number_stands_for_texts_and_for_no_others() -> None:
    numbers = {rechecks.number(texts) for texts in ([], ["a"], ["a", "b"], ["ab"], [None])}
    assert len(numbers) == 5
    assert max(numbers) < 1 << 60
    assert rechecks.proof(Task("a"), None) is None
    assert rechecks.proof(Task("a"), "1" * 40) != rechecks.proof(Task("a"), "2" * 40)


def test_what_has_not_run_on_this_content_is_due_and_then_what_failed_there() -> None:
    late, early = failed("2025-07-02"), failed("2025-07-01", "elsewhere")
    tasks = [
        done("new"),
        done("old", found=Recheck(OLD, passed=True)),
        done("good", found=PASSED),
        done("late", found=late),
        done("sooner", found=early),
        done("no check", " "),
        Task("pending", validation=Validation("true")),
        done("unproven", unproven=True),
    ]

    def ids(of: list[Task]) -> list[str]:
        return [task.id for task in rechecks.due(of, NEW.__eq__)]

    assert ids(tasks) == ["new", "old"]
    assert ids(tasks[2:]) == ["sooner", "late"]
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
    hidden = [Validation("make", hidden=HeldOut(each * 64)) for each in "ab"]
    assert (
        len({rechecks.whole_key(Task("a", validation=each)) for each in (Validation("make"), *hidden)}) == 3
    )


def test_where_a_check_has_passed_last_is_what_its_re_check_found_or_its_commit() -> None:
    assert rechecks.passed_on(done("a", completed_commit=OLD)) == OLD
    assert rechecks.passed_on(done("a", found=PASSED, completed_commit=OLD)) == NEW
    assert rechecks.passed_on(done("a", found=failed(STAMP), completed_commit=OLD)) is None


def test_a_failure_where_its_work_is_not_says_nothing_of_the_task() -> None:
    assert rechecks.is_elsewhere(done("a", found=failed(STAMP, "elsewhere")))
    assert not rechecks.is_elsewhere(done("a", found=failed(STAMP)))


# -- which checks may say something else since they ran last


FILES = ("src/a.py", "src/b.py", "tests/test_a.py", "conftest.py")

# Newest first: a later task has changed src/a.py, after task b was done, which was after task a was.
HISTORY = History(
    [Commit("3", ("src/a.py",)), Commit("2", ("src/b.py",)), Commit("1", ("src/a.py", "docs"))], FILES
)


OF_A = done("a", "pytest tests/test_a.py", completed_commit="1")
IN_SRC = done("b", completed_commit="2")._replace(validation=Validation("grep x a.py", cwd="src"))
DIFFER = {
    "its own file": (OF_A, True),
    "another file": (done("b", "pytest tests/test_a.py", completed_commit="2"), False),
    "a file that it names": (done("b", "grep x src/a.py", completed_commit="2"), True),
    "below what it names": (done("b", "grep -r x ./src", completed_commit="2"), True),
    "a file that it names from its directory": (IN_SRC, True),
    "it names no file": (done("b", "make test", completed_commit="2"), True),
    "nothing came later": (done("c", "make test", completed_commit="3"), False),
    "a commit of another branch": (done("d", "make test", completed_commit="9"), True),
    "without a commit": (done("e", "grep x src/b.py"), True),
    "checked since": (OF_A._replace(recheck=Recheck("3", passed=True)), False),
    "failed since": (OF_A._replace(recheck=Recheck("3", passed=False)), True),
}


@pytest.mark.parametrize(("task", "may_differ"), DIFFER.values(), ids=DIFFER)
def test_of_a_long_list_what_may_say_something_else_is_checked(task: Task, *, may_differ: bool) -> None:
    others = [done(name, completed_commit=commit) for name, commit in zip("abc", "123", strict=True)]
    known = [task, *(each for each in others if each.id != task.id)]

    assert rechecks.of([task], known, HISTORY) == ([task] if may_differ else [])


def test_the_settings_of_a_test_runner_concern_all_its_checks() -> None:
    history = History([Commit("2", ("sub/conftest.py",)), Commit("1", ("tests/test_a.py",))], FILES)
    task = done("a", "pytest tests/test_a.py", completed_commit="1")

    assert rechecks.of([task], [task], history) == [task]

"""Which checks may say something else since they ran last."""

from __future__ import annotations

import pytest

from harness_lib.rules import rechecks
from harness_lib.rules.rechecks import Commit, History
from harness_lib.task import Recheck, Task, Validation
from tests.rules.lists import done

FILES = ("src/a.py", "src/b.py", "tests/test_a.py", "conftest.py")

# Newest first: a later task has changed src/a.py, after task b was done, which was after task a was.
HISTORY = History(
    [Commit("3", ("src/a.py",)), Commit("2", ("src/b.py",)), Commit("1", ("src/a.py", "docs"))], FILES
)


@pytest.mark.parametrize(
    ("task", "may_differ"),
    [
        pytest.param(done("a", "pytest tests/test_a.py", completed_commit="1"), True, id="its own file"),
        pytest.param(done("b", "pytest tests/test_a.py", completed_commit="2"), False, id="another file"),
        pytest.param(done("b", "grep x src/a.py", completed_commit="2"), True, id="a file that it names"),
        pytest.param(done("b", "grep -r x ./src", completed_commit="2"), True, id="below what it names"),
        pytest.param(
            done("b", "grep x a.py", completed_commit="2")._replace(
                validation=Validation("grep x a.py", cwd="src")
            ),
            True,
            id="a file that it names from its directory",
        ),
        pytest.param(done("b", "make test", completed_commit="2"), True, id="it names no file"),
        pytest.param(done("c", "make test", completed_commit="3"), False, id="nothing came later"),
        pytest.param(done("d", "make test", completed_commit="9"), True, id="a commit of another branch"),
        pytest.param(done("e", "grep x src/b.py"), True, id="without a commit"),
        pytest.param(
            done("a", "pytest tests/test_a.py", Recheck("3", passed=True), completed_commit="1"),
            False,
            id="checked since",
        ),
        pytest.param(
            done("a", "pytest tests/test_a.py", Recheck("3", passed=False), completed_commit="1"),
            True,
            id="failed since",
        ),
    ],
)
def test_of_a_long_list_what_may_say_something_else_is_checked(task: Task, *, may_differ: bool) -> None:
    others = [
        done("a", completed_commit="1"),
        done("b", completed_commit="2"),
        done("c", completed_commit="3"),
    ]
    known = [task, *(each for each in others if each.id != task.id)]

    assert rechecks.of([task], known, HISTORY) == ([task] if may_differ else [])


def test_the_settings_of_a_test_runner_concern_all_its_checks() -> None:
    history = History([Commit("2", ("sub/conftest.py",)), Commit("1", ("tests/test_a.py",))], FILES)
    task = done("a", "pytest tests/test_a.py", completed_commit="1")

    assert rechecks.of([task], [task], history) == [task]

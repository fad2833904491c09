"""What each runner's words mean, row by row; the recorded outputs of whole runs are in test_excerpt.py."""

from __future__ import annotations

import pytest

from harness_lib.rules import runners
from harness_lib.rules.runners import Failed

ROWS: dict[str, tuple[list[str], list[Failed]]] = {
    "pytest: nothing is said of it": (["FAILED a.py::test_a"], [Failed("a.py::test_a")]),
    "pytest: a word of the log": (["ERROR no such host", "FAILED to connect"], []),
    "unittest: a colon in its name": (
        ["FAIL: test_a (x='b: c')", "-" * 70, "AssertionError: no"],
        [Failed("test_a (x='b: c')", "AssertionError: no")],
    ),
    "jest: what the code prints": (["  \u25cf Console", "    boom"], []),
    "vitest: one after the other": (
        [" FAIL  a > one", "Error: x", " FAIL  a > two ", "Error: y"],
        [Failed("a > one", "Error: x"), Failed("a > two", "Error: y")],
    ),
    "go: a test that says nothing": (["--- FAIL: TestA (0.00s)"], [Failed("TestA")]),
    "go: a panic": (["--- FAIL: TestA (0.00s)", "panic: boom"], [Failed("TestA", "panic: boom")]),
    "cargo: a place is told in the next row": (
        ["error[E0001]: a", " --> src/l.rs:1:2", "error: aborting", "talk", " --> src/l.rs:3:4"],
        [Failed("src/l.rs:1:2", "error[E0001]: a")],
    ),
    "each once, by the first word of why": (
        ["FAILED a.py::b - x", "FAILED a.py::b - y", "FAILED a.py::b"],
        [Failed("a.py::b", "x")],
    ),
}


@pytest.mark.parametrize(("rows", "failed"), ROWS.values(), ids=ROWS)
def test_a_failure_is_told_by_its_name_and_the_first_line_that_says_why(
    rows: list[str], failed: list[Failed]
) -> None:
    assert runners.failures(rows) == failed


def test_no_more_than_anybody_reads_is_taken() -> None:
    assert len(runners.failures([f"FAILED a.py::test_{n} - no" for n in range(1000)])) == runners.MOST

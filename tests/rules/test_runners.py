"""What each runner's words mean, row by row; the recorded outputs of whole runs are in test_excerpt.py."""

from __future__ import annotations

import pytest

from harness_lib.rules import runners
from harness_lib.rules.runners import Failed

DOUBLE, SINGLE = "=" * 70, "-" * 70
SUMMARY = "=== short test summary info ==="
END = "=== 1 failed in 0.1s ==="


def failures_in(*rows: str) -> list[Failed]:
    return runners.failures(rows)


PYTEST: dict[str, tuple[list[str], list[Failed]]] = {
    "a method of a class": (
        ["___ TestShop.test_a ___", "E   boom", "E   more", SUMMARY, "FAILED a.py::TestShop::test_a - boom"],
        [Failed("a.py::TestShop::test_a", ("boom", "more"))],
    ),
    "nothing is said of it": ([SUMMARY, "FAILED a.py::test_a"], [Failed("a.py::test_a")]),
    "the last place counts": (
        ["___ test_a ___", "a.py:3: KeyError", "E   boom", "b.py:7: KeyError", "", END],
        [Failed("test_a", ("boom",), "b.py:7")],
    ),
    "torn before the summary": (["___ test_a ___", "E   boom"], [Failed("test_a", ("boom",))]),
    "a report that says nothing": (["___ test_a ___", "x = 1", END], []),
    "what stands in no report": (["E   before", END, "E   after", END], []),
}

UNITTEST: dict[str, tuple[list[str], list[Failed]]] = {
    "torn behind its name": ([DOUBLE, "FAIL: test_a"], [Failed("test_a")]),
    "a colon in its name": (
        [DOUBLE, "FAIL: test_a (x='b: c')", SINGLE, "AssertionError: no", SINGLE],
        [Failed("test_a (x='b: c')", ("AssertionError: no",))],
    ),
    "without a traceback": (
        [DOUBLE, "ERROR: test_a", SINGLE, "ImportError: no a", SINGLE],
        [Failed("test_a", ("ImportError: no a",))],
    ),
}

JEST: dict[str, tuple[list[str], list[Failed]]] = {
    "no file is known": (["  \u25cf one", "    boom"], []),
    "the file of the last word": (
        ["FAIL ./a.test.js", "PASS my b.test.js (5.2 s)", "  \u25cf one", "    boom"],
        [Failed("my b.test.js \u203a one", ("boom",))],
    ),
}

VITEST: dict[str, tuple[list[str], list[Failed]]] = {
    "one after the other": (
        [" FAIL  a > one", "Error: x", " FAIL  a > two", "Error: y", "\u23af\u23af\u23af", "Error: z"],
        [Failed("a > one", ("Error: x",)), Failed("a > two", ("Error: y",))],
    ),
}

GO: dict[str, tuple[list[str], list[Failed]]] = {
    "a place that no compiler named": (["a.go:1:2: said"], []),
    "only of the package": (["# pkg", "a.go:1:1: x", "ok", "b.go:1:1: y"], [Failed("a.go:1:1", ("x",))]),
    "an error of two rows": (
        ["# pkg", "a.go:1:1: x", "    more", "b.go:2:2: y"],
        [Failed("a.go:1:1", ("x",)), Failed("b.go:2:2", ("y",))],
    ),
    "a test that says nothing": (["--- FAIL: TestA (0.00s)"], [Failed("TestA")]),
    "a test whose part has failed": (
        ["--- FAIL: TestA (0.00s)", "    --- FAIL: TestA/b (0.00s)", "        a_test.go:3: no"],
        [Failed("TestA/b", ("a_test.go:3: no",))],
    ),
    "a test that says something beside its part": (
        ["--- FAIL: TestA (0.00s)", "    a_test.go:9: all", "    --- FAIL: TestA/b (0.00s)"],
        [Failed("TestA", ("a_test.go:9: all",)), Failed("TestA/b")],
    ),
    "a panic": (
        ["--- FAIL: TestA (0.00s)", "panic: boom", "", "main.TestA()", "\t/p/a_test.go:7 +0x1"],
        [Failed("TestA", ("panic: boom",), "/p/a_test.go:7")],
    ),
}

CARGO: dict[str, tuple[list[str], list[Failed]]] = {
    "no test": (["---- something else", "x stdout ----", "failures:"], []),
    "one after the other": (
        ["---- a stdout ----", "one", "---- b stdout ----", "two", "failures:", "    a", "    b"],
        [Failed("a", ("one",)), Failed("b", ("two",))],
    ),
    "a note is no message": (
        ["---- a stdout ----", "thread 'a' panicked at src/lib.rs:1:2:", "boom", "note: run with `X=1`"],
        [Failed("a", ("boom",), "src/lib.rs:1:2")],
    ),
    "a place is told in the next row": (
        ["error[E0001]: a", " --> src/l.rs:1:2", "error: aborting", "talk", " --> src/l.rs:3:4"],
        [Failed("src/l.rs:1:2", ("error[E0001]: a",))],
    ),
    "what is below the marks": (
        ["error: a", " --> a.rs:1:2", "  | ^^ X has ^ here", "", "  | - no", "  | ^ b", "help: ^ c"],
        [Failed("a.rs:1:2", ("error: a", "X has ^ here", "b"))],
    ),
}

ROWS = {
    f"{runner}: {name}": case
    for runner, cases in {
        "pytest": PYTEST,
        "unittest": UNITTEST,
        "jest": JEST,
        "vitest": VITEST,
        "go": GO,
        "cargo": CARGO,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("row", ROWS)
def test_what_has_failed(row: str) -> None:
    rows, failed = ROWS[row]

    assert failures_in(*rows) == failed


def test_no_more_than_anybody_reads_is_taken() -> None:
    assert len(failures_in(SUMMARY, *(f"FAILED a.py::test_{n} - no" for n in range(1000)))) == runners.MOST

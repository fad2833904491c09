"""What of a check's output is shown; `outputs/` was recorded from the real runners."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from harness_lib.rules import excerpt
from harness_lib.system.files import printed

OUTPUTS = Path(__file__).with_name("outputs")


def recorded(name: str) -> list[str]:
    return printed.plain((OUTPUTS / f"{name}.txt").read_bytes())


SHOWN = {
    "pytest": """\
test_cart.py::test_total_adds_tax
  AssertionError: tax is missing
  assert 30 == 33
   +  where 30 = total([10, 20])
  at test_cart.py:11
test_cart.py::test_names[a b]
  AssertionError: assert False
   +  where False = <built-in method isalpha of str object at 0x7f57d1b4f1f0>()
   +    where <built-in method isalpha of str object at 0x7f57d1b4f1f0> = 'a b'.isalpha
  at test_cart.py:15
test_cart.py::test_reads_file
  FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/cart.json'
  at test_cart.py:18
test_cart.py::test_shop
  RuntimeError: no shop today
  at test_cart.py:22""",
    "pytestx": """\
test_cart.py::test_total_adds_tax
  AssertionError: tax is missing
  assert 30 == 33
   +  where 30 = total([10, 20])
  at test_cart.py:11""",
    "pytestmaxfail1qtbno": """\
test_cart.py::test_total_adds_tax
  AssertionError: tax is missing""",
    "pytestcollect": """\
test_broken.py
  ModuleNotFoundError: No module named 'nothing_of_that_name'""",
    "unittest": """\
test_reads_file (test_cart.CartTest.test_reads_file)
  FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/cart.json'
  at /home/me/un/test_cart.py:12, in test_reads_file
test_many (test_cart.CartTest.test_many) (n=1)
  AssertionError: 1 != 2
  at /home/me/un/test_cart.py:17, in test_many
test_total_adds_tax (test_cart.CartTest.test_total_adds_tax)
  AssertionError: 30 != 33 : tax is missing
  at /home/me/un/test_cart.py:8, in test_total_adds_tax""",
    "jest": """\
cart.test.js \u203a cart \u203a adds the tax
  expect(received).toBe(expected) // Object.is equality
  Expected: 33
  Received: 30
  at Object.toBe (cart.test.js:7:29)
cart.test.js \u203a cart \u203a reads a file
  ENOENT: no such file or directory, open '/nonexistent/cart.json'
  at Object.readFileSync (cart.test.js:9:44)
broken.test.js \u203a Test suite failed to run
  Cannot find module './nothing-here' from 'broken.test.js'
  at Object.require (broken.test.js:1:1)""",
    "vitest": """\
broken.test.js [ broken.test.js ]
  Error: Cannot find module './nothing-here' imported from /home/me/js/vitp/broken.test.js
  at broken.test.js:1:1
cart.test.js > cart > adds the tax
  AssertionError: expected 30 to be 33 // Object.is equality
  - Expected
  + Received
  - 33
  + 30
  at cart.test.js:8:29
cart.test.js > cart > is an object
  AssertionError: expected { a: 1, b: [ 1 ] } to deeply equal { a: 2, b: [ 1 ] }
  - Expected
  + Received
    {
  -   "a": 2,
  +   "a": 1,
      "b": [
        1,
  at cart.test.js:10:55""",
    "gotest": """\
TestTax
  cart_test.go:16: Total = 30, want 33: tax is missing
TestNames/b_c
  cart_test.go:24: bad name "b c"
TestReads
  cart_test.go:32: open /nonexistent/cart.json: no such file or directory""",
    "gopanic": """\
TestPanic
  panic: assignment to entry in nil map [recovered]
  at /home/me/go/cart_test.go:7""",
    "gobuild": """\
./cart_test.go:6:6
  unused declared but not used
./cart_test.go:7:2
  undefined: Missing""",
    "cargo": """\
tests::adds_the_tax
  assertion `left == right` failed: tax is missing
    left: 30
   right: 33
  at src/lib.rs:17:9
tests::reads_a_file
  called `Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or \
directory" }
  at src/lib.rs:22:49""",
    "cargobuild": """\
src/lib.rs:2:5
  error[E0308]: mismatched types
  expected `String`, found `u32`
src/lib.rs:4:25
  error[E0425]: cannot find function `missing` in this scope
  not found in this scope""",
    "tsc": """\
src/cart.ts:3:3
  TS2322: Type 'number' is not assignable to type 'string'.
src/cart.ts:5:34
  TS2322: Type 'number' is not assignable to type 'string'.
src/cart.ts:6:13
  TS2554: Expected 1 arguments, but got 2.""",
}


@pytest.mark.parametrize("runner", SHOWN)
def test_what_failed_and_why_is_shown_of_each_known_runner(runner: str) -> None:
    assert excerpt.of(recorded(runner)) == SHOWN[runner]


@pytest.mark.parametrize(
    ("other", "same"),
    [("gotestv", "gotest"), ("jestv", "jest"), ("unittestv", "unittest"), ("tscpretty", "tsc")],
)
def test_more_talk_of_a_runner_changes_nothing(other: str, same: str) -> None:
    assert excerpt.of(recorded(other)) == SHOWN[same]


def test_a_line_names_each_failure_and_the_first_word_of_why() -> None:
    assert excerpt.in_a_line(recorded("cargo")) == (
        "tests::adds_the_tax: assertion `left == right` failed: tax is missing / tests::reads_a_file: called "
        '`Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or '
        'directory" }'
    )
    assert excerpt.in_a_line(["a", "", "2 problems ", "exit"]) == "2 problems / exit"


def test_too_many_failures_lose_their_messages_first_and_are_counted_then() -> None:
    def summary(count: int) -> list[str]:
        rows = [f"FAILED test_many.py::test_number_{n} - AssertionError: {'x' * 60}" for n in range(count)]
        return ["=== short test summary info ===", *rows]

    names = excerpt.of(summary(40)).splitlines()
    assert names == [f"test_many.py::test_number_{n}" for n in range(40)]
    counted = excerpt.of(summary(150))
    shown = counted.splitlines()
    assert len(counted) <= excerpt.LIMIT
    assert shown[-1] == f"\u2026 and {150 - len(shown) + 1} more"
    assert len(excerpt.in_a_line(summary(150))) <= excerpt.ONE_LINE


def test_of_an_unknown_program_both_ends_are_shown() -> None:
    lines = ["first words", *(f"line {n}" for n in range(5000)), "", "last words"]

    shown = excerpt.of(lines)

    assert len(shown) <= excerpt.LIMIT
    assert shown.startswith("first words\nline 0\n")
    assert shown.endswith("\nline 4999\nlast words")
    assert excerpt.of(["only", "", "this"]) == "only\nthis"
    assert excerpt.of([]) == ""


@pytest.mark.parametrize("runner", SHOWN)
def test_torn_output_never_breaks_it(runner: str) -> None:
    lines = recorded(runner)
    for cut in range(len(lines)):
        assert len(excerpt.of(lines[:cut])) <= excerpt.LIMIT
        assert len(excerpt.of(lines[cut:])) <= excerpt.LIMIT


def test_a_line_without_end_is_cut() -> None:
    assert len(excerpt.of(["x" * 1_000_000])) <= excerpt.LIMIT
    assert len(excerpt.of(["FAILED " + "y" * 1_000_000])) <= excerpt.LIMIT


@pytest.mark.parametrize("limit", range(90, 130))
def test_as_many_names_are_shown_as_there_is_room_for(limit: int) -> None:
    names = [f"test_{n}" for n in range(10, 40)]
    rows = ["=== short test summary info ===", *(f"FAILED {name} - no" for name in names)]

    shown = excerpt.of(rows, limit)

    *kept, last = shown.splitlines()
    assert kept == names[: len(kept)]
    assert last == f"\u2026 and {len(names) - len(kept)} more"
    assert limit - len(f"\n{names[0]}") < len(shown) <= limit


@pytest.mark.parametrize("limit", range(150, 190))
def test_a_third_of_the_room_is_for_the_beginning_and_the_rest_for_the_end(limit: int) -> None:
    lines = [f"line {n:04}" for n in range(500)]

    first, last = (part.split("\n") for part in excerpt.of(lines, limit).split("\n\u2026\n"))

    # Each row has nine characters and a line break.
    assert first == lines[: limit // 3 // 10]
    assert last == lines[-((limit - limit // 3 - 3) // 10) :]


def test_messages_are_cut_to_three_rows_then_one_then_none() -> None:
    rows = ["=== short test summary info ===", "FAILED test_a - no", "FAILED test_b - no"]
    for name in ("test_b", "test_a"):
        rows[:0] = [f"___ {name} ___", *(f"E   row {n}" for n in range(5))]

    def shown(limit: int) -> str:
        return excerpt.of(rows, limit)

    def cut_to(count: int) -> str:
        message = "".join(f"\n  row {n}" for n in range(count))
        return f"test_a{message}\ntest_b{message}"

    steps = [cut_to(count) for count in (5, 3, 1, 0)]
    for longer, shorter in pairwise(steps):
        assert shown(len(longer)) == longer
        assert shown(len(longer) - 1) == shorter


def test_a_row_is_cut_with_a_sign_of_it_and_only_where_it_is_too_long() -> None:
    fits = "x" * excerpt.ROW_LENGTH

    assert excerpt.of([fits]) == fits
    assert excerpt.of([fits + "y"]) == fits[:-1] + "\u2026"
    assert excerpt.of(["a", "b"], 3) == "a\nb"

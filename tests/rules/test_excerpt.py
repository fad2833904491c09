"""What of a check's output is shown; `outputs/` has what real runners wrote, and what is shown of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.rules import runners
from harness_lib.system.files import printed

OUTPUTS = Path(__file__).with_name("outputs")
SHOWN = {path.stem: path.read_text("utf-8").removesuffix("\n") for path in sorted(OUTPUTS.glob("*.shown"))}


def recorded(name: str) -> list[str]:
    return printed.plain((OUTPUTS / f"{name}.txt").read_bytes())


@pytest.mark.parametrize("runner", SHOWN)
def test_what_failed_and_why_is_shown_of_each_known_runner_and_torn_never_breaks(runner: str) -> None:
    lines = recorded(runner)

    assert runners.of(lines) == SHOWN[runner]
    for cut in range(len(lines)):
        assert len(runners.of(lines[:cut])) <= runners.LIMIT
        assert len(runners.of(lines[cut:])) <= runners.LIMIT


@pytest.mark.parametrize(
    ("other", "same"),
    [("gotestv", "gotest"), ("jestv", "jest"), ("unittestv", "unittest"), ("pytestq", "pytest")],
)
def test_more_talk_of_a_runner_changes_no_name(other: str, same: str) -> None:
    assert {each.name for each in runners.failures(recorded(other))} == {
        each.name for each in runners.failures(recorded(same))
    }


def test_a_line_names_each_failure_and_the_first_word_of_why() -> None:
    assert runners.in_a_line(recorded("cargo")) == (
        "tests::adds_the_tax: assertion `left == right` failed: tax is missing / tests::reads_a_file: called "
        '`Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or '
        'directory" }'
    )
    assert runners.in_a_line(["a", "", "2 problems ", "exit"]) == "2 problems / exit"


def test_of_an_unknown_program_the_end_is_shown() -> None:
    lines = [*(f"line {n}" for n in range(5000)), "", "last words"]

    shown = runners.of(lines)

    assert runners.LIMIT - 20 < len(shown) <= runners.LIMIT
    assert shown.startswith("\u2026\nline ")
    assert shown.endswith("\nline 4999\nlast words")
    assert runners.of(["only", "", "this"]) == "only\nthis"
    assert runners.of([]) == ""


def test_a_line_without_end_is_cut() -> None:
    assert len(runners.of(["x" * 1_000_000])) <= runners.LIMIT
    assert len(runners.of(["FAILED a.py::" + "y" * 1_000_000])) <= runners.LIMIT


def test_as_many_names_are_shown_as_there_is_room_for_and_the_rest_is_counted() -> None:
    rows = [f"FAILED a.py::test_{n} - {'x' * 60}" for n in range(100, 400)]

    names, _, rest = runners.of(rows).partition("\n\u2026 and ")

    assert names.split("\n") == [f"a.py::test_{n}" for n in range(100, 100 + len(names.split("\n")))]
    assert rest.startswith(f"{runners.MOST - len(names.split())} more\n")
    assert len(names) < runners.LIMIT // 3
    assert runners.of(rows).endswith(rows[-1])
    assert len(runners.in_a_line(rows)) <= runners.ONE_LINE


def test_why_is_shown_of_what_has_scrolled_by() -> None:
    rows = ["___ test_a ___", "E   boom", *(f"talk {n}" for n in range(40)), "FAILED a.py::test_a - boom"]

    assert runners.of(rows).startswith("a.py::test_a\nE   boom\n\u2026\n")


def test_a_row_is_cut_with_a_sign_of_it_and_only_where_it_is_too_long() -> None:
    fits = "x" * runners.ROW_LENGTH

    assert runners.of([fits]) == fits
    assert runners.of([fits + "y"]) == fits[:-1] + "\u2026"

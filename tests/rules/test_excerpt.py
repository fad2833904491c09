"""What of a check's output is shown; `outputs/` has what real runners wrote, and what is shown of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from harness_lib.rules import runners
from harness_lib.system.files import printed

OUTPUTS = Path(__file__).with_name("outputs")
SHOWN = {path.stem: path.read_text("utf-8").removesuffix("\n") for path in sorted(OUTPUTS.glob("*.shown"))}
SUMMARY = "=== short test summary info ==="


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
    [("gotestv", "gotest"), ("jestv", "jest"), ("unittestv", "unittest"), ("tscpretty", "tsc")],
)
def test_more_talk_of_a_runner_changes_nothing(other: str, same: str) -> None:
    assert runners.of(recorded(other)) == SHOWN[same]


def test_a_line_names_each_failure_and_the_first_word_of_why() -> None:
    assert runners.in_a_line(recorded("cargo")) == (
        "tests::adds_the_tax: assertion `left == right` failed: tax is missing / tests::reads_a_file: called "
        '`Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or '
        'directory" }'
    )
    assert runners.in_a_line(["a", "", "2 problems ", "exit"]) == "2 problems / exit"


def test_of_an_unknown_program_both_ends_are_shown() -> None:
    lines = ["first words", *(f"line {n}" for n in range(5000)), "", "last words"]

    shown = runners.of(lines)

    assert len(shown) <= runners.LIMIT
    assert shown.startswith("first words\nline 0\n")
    assert shown.endswith("\nline 4999\nlast words")
    assert runners.of(["only", "", "this"]) == "only\nthis"
    assert runners.of([]) == ""


def test_a_line_without_end_is_cut() -> None:
    assert len(runners.of(["x" * 1_000_000])) <= runners.LIMIT
    assert len(runners.of(["FAILED " + "y" * 1_000_000])) <= runners.LIMIT


def test_as_many_names_are_shown_as_there_is_room_for_and_the_rest_is_counted() -> None:
    names = [f"test_{n}" for n in range(10, 40)]
    rows = [SUMMARY, *(f"FAILED {name} - no" for name in names)]

    for limit in range(90, 130):
        *kept, last = runners.of(rows, limit).splitlines()
        assert kept == names[: len(kept)]
        assert last == f"\u2026 and {len(names) - len(kept)} more"
        assert limit - len(f"\n{names[0]}") < len("\n".join((*kept, last))) <= limit
    many = [SUMMARY, *(f"FAILED {name} - {'x' * 60}" for name in names * 9)]
    assert len(runners.in_a_line(many)) <= runners.ONE_LINE


def test_a_third_of_the_room_is_for_the_beginning_and_the_rest_for_the_end() -> None:
    lines = [f"line {n:04}" for n in range(500)]

    for limit in range(150, 190):
        first, last = (part.split("\n") for part in runners.of(lines, limit).split("\n\u2026\n"))
        # Each row has nine characters and a line break.
        assert first == lines[: limit // 3 // 10]
        assert last == lines[-((limit - limit // 3 - 3) // 10) :]


def test_messages_are_cut_to_three_rows_then_one_then_none() -> None:
    rows = [SUMMARY, "FAILED test_a - no", "FAILED test_b - no"]
    for name in ("test_b", "test_a"):
        rows[:0] = [f"___ {name} ___", *(f"E   row {n}" for n in range(5))]

    def shown(limit: int) -> str:
        return runners.of(rows, limit)

    def cut_to(count: int) -> str:
        message = "".join(f"\n  row {n}" for n in range(count))
        return f"test_a{message}\ntest_b{message}"

    steps = [cut_to(count) for count in (5, 3, 1, 0)]
    for longer, shorter in pairwise(steps):
        assert shown(len(longer)) == longer
        assert shown(len(longer) - 1) == shorter


def test_a_row_is_cut_with_a_sign_of_it_and_only_where_it_is_too_long() -> None:
    fits = "x" * runners.ROW_LENGTH

    assert runners.of([fits]) == fits
    assert runners.of([fits + "y"]) == fits[:-1] + "\u2026"
    assert runners.of(["a", "b"], 3) == "a\nb"

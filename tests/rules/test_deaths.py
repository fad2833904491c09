"""A worker that is killed is replaced, all night long; only where none would live is it pointless."""

from __future__ import annotations

import pytest

from harness_lib.rules import run_state
from harness_lib.rules.run_state import Deaths


def after(*times: float) -> Deaths:
    counted = Deaths()
    for time in times:
        counted = counted.another(time)
    return counted


def test_four_deaths_in_a_row_are_too_many_and_three_are_not() -> None:
    assert not after(0, 1, 2).too_many
    assert after(0, 1, 2, 3).too_many
    assert after(90_000, 90_001, 90_002, 90_003).too_many


def test_deaths_of_a_whole_night_are_not_counted_together() -> None:
    assert not after(*range(0, 36_000, 300)).too_many


def test_a_clock_that_was_set_back_makes_no_death_eternal() -> None:
    assert not after(50_000, 50_001, 50_002, 10).too_many


@pytest.mark.parametrize(
    ("code", "words", "sentence"),
    [
        (-9, "", "killed by signal 9: out of memory?"),
        (-15, "", "killed by signal 15"),
        (0, "", "ended with 0"),
        (1, "", "ended with 1"),
        (1, "KeyError: 'x'", "ended with 1; its last words: KeyError: 'x'"),
    ],
)
def test_how_it_died_is_always_said(code: int, words: str, sentence: str) -> None:
    assert run_state.describe(code, words) == sentence

"""What is old enough, or too much, to be kept."""

from __future__ import annotations

from harness_lib.rules.stats import SECONDS_PER_DAY, Old, outdated

NOW = 1000 * SECONDS_PER_DAY


def old(name: str, days: float, size: int = 1) -> Old:
    return Old(name, NOW - days * SECONDS_PER_DAY, size)


def test_what_is_older_goes_the_oldest_first() -> None:
    files = [old("new", 1), old("older", 31), old("oldest", 90), old("edge", 30)]
    assert [each.name for each in outdated(files, NOW, 30, 100)] == ["oldest", "older"]


def test_beyond_the_size_the_oldest_go_and_a_giant_does_not_take_the_rest_with_it() -> None:
    files = [old("one", 1, 40), old("giant", 2, 500), old("two", 3, 40), old("three", 4, 40)]
    assert [each.name for each in outdated(files, NOW, 30, 100)] == ["three", "giant"]


def test_what_just_fits_is_kept() -> None:
    assert outdated([old("one", 1, 50), old("two", 2, 50)], NOW, 30, 100) == ()

"""The programs of `benchmarks/` can be asked what they measure; to measure is nothing for a test."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import CHECKOUT

QUARTER_OF_AN_HOUR = 15 * 60


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKOUT / "benchmarks" / "run.py"), *words]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def test_all_measurements_are_listed_and_meant_to_take_less_than_a_quarter_of_an_hour() -> None:
    listed = run("--list")
    assert listed.returncode == 0, listed.stderr
    assert "any verb at 100 tasks" in listed.stdout
    assert sum(int(line.split()[1]) for line in listed.stdout.splitlines()) < QUARTER_OF_AN_HOUR


def test_a_row_that_there_is_not_measures_nothing_and_names_those_there_are() -> None:
    said = run("--only", "no such row")
    assert said.returncode == 2
    assert "any verb at 100 tasks" in said.stdout

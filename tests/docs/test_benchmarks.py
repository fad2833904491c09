"""The programs of `benchmarks/` can be asked what they measure; to measure is nothing for a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import table
from benchmarks.measuring import HEAD, Row
from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end

# About a quarter of an hour.
MOST_SECONDS = 18 * 60


def benchmark(*words: str) -> subprocess.CompletedProcess[str]:
    return run_to_end([sys.executable, CHECKOUT / "benchmarks/run.py", *words])


def test_all_measurements_are_listed_and_meant_to_take_about_a_quarter_of_an_hour() -> None:
    listed = benchmark("--list")
    assert listed.returncode == 0, listed.stderr
    assert "any verb at 100 tasks" in listed.stdout
    assert sum(int(line.split()[1]) for line in listed.stdout.splitlines()) < MOST_SECONDS


def test_a_row_that_there_is_not_measures_nothing_and_names_those_there_are() -> None:
    said = benchmark("--only", "no such row")
    assert said.returncode == 2
    assert "any verb at 100 tasks" in said.stdout


SETTLED = """
import subprocess, sys
from pathlib import Path
from benchmarks import projects, turns
home = Path(sys.argv[1])
projects.settle_in(home)
before = sorted((home / "data").iterdir())
for program in ("hs", "harness"):
    subprocess.run([sys.executable, "-I", "-S", f"bin/{program}", "--help"], check=True)
assert [path for path in sorted((home / "data").iterdir()) if path.name.startswith("env-")] == before
"""


@pytest.mark.release
def test_the_launchers_find_the_packages_of_a_benchmark_and_make_none(tmp_path: Path) -> None:
    done = run_to_end([sys.executable, "-c", SETTLED, str(tmp_path / "home")], cwd=CHECKOUT)
    assert done.returncode == 0, done.stderr


ROWS = [Row("this", "≤ 2", "1.00", met=True), Row("that", "", "3 ms")]
PAGE = "\n".join(["# Speed", "", *HEAD, *map(str, ROWS), "", "The end."])


def test_one_row_is_renewed_where_it_stands_and_a_new_one_comes_last() -> None:
    news = [Row("this", "≤ 2", "2.50", met=False), Row("more", "", "1")]
    page = table.renewed(PAGE, news, whole=False)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == ["| this | ≤ 2 | 2.50 | MISSED |", "| that |  | 3 ms |  |", "| more |  | 1 |  |"]
    assert page.endswith("\n\nThe end.\n")


def test_the_whole_measured_anew_leaves_no_old_row() -> None:
    page = table.renewed(PAGE, [Row("new", "", "1")], whole=True)
    assert [line for line in page.splitlines() if line.startswith("| ")] == [HEAD[0], "| new |  | 1 |  |"]


def test_a_page_without_the_table_is_left_alone() -> None:
    with pytest.raises(ValueError, match="no table"):
        table.renewed("# Nothing", ROWS, whole=True)


def test_the_page_of_the_project_has_the_table() -> None:
    page = (CHECKOUT / "docs/speed.md").read_text()
    assert "| new |" in table.renewed(page, [Row("new", "", "1")], whole=False)

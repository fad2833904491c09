"""What the page on "completed" says of cheats and honest work is what the tests of these hold."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks import ways
from benchmarks.cases import Case, Result
from benchmarks.cheats import CHEATS
from benchmarks.honest import HONEST
from tests.conftest import CHECKOUT

PAGE = (CHECKOUT / "docs/done.md").read_text()
README = (CHECKOUT / "README.md").read_text()
RUN, HELD_OUT = "harness run", "harness run with held-out checks"


def _rows(title: str) -> dict[str, list[str]]:
    """Return the rows of the table with that title, by their first cell."""
    table = PAGE.split(f"| {title} |")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    return {name: cells for name, *cells in rows}


def _count(several: Mapping[str, Case], *results: Result) -> str:
    return str(sum(case.run in results for case in several.values()))


def test_the_tables_have_a_row_for_each_way_of_working() -> None:
    for title in ("20 tasks", f"{len(CHEATS)} ways to cheat", f"{len(HONEST)} honest tasks"):
        assert list(_rows(title)) == list(ways.WAYS)


def test_what_a_run_makes_of_the_cases_is_what_the_tests_of_each_hold() -> None:
    for title, several in (("ways to cheat", CHEATS), ("honest tasks", HONEST)):
        false, named, held, _ = _rows(f"{len(several)} {title}")[RUN]
        assert false == _count(several, "false", "named")
        assert named == _count(several, "named")
        assert held == _count(several, "held")


def test_what_still_passes_is_listed_to_the_last_cheat() -> None:
    nobody, told = PAGE.split("Nobody is told:")[1].split("You are told")
    for text, result in ((nobody, "false"), (told, "named")):
        listed = re.findall(r"^- \*([^*]+)\*:", text, re.MULTILINE)
        assert listed == [name for name, case in CHEATS.items() if case.run == result]


def test_the_bars_are_kept_by_what_was_measured() -> None:
    tasks = _rows("20 tasks")

    assert int(tasks[RUN][1]) <= 4
    assert int(tasks[HELD_OUT][1]) == 0
    assert all(int(_rows(f"{len(HONEST)} honest tasks")[way][2]) <= 1 for way in (RUN, HELD_OUT))


def test_the_first_screen_has_the_figure() -> None:
    tasks = _rows("20 tasks")
    (line,) = (line for line in README.splitlines()[:24] if "docs/done.md" in line)
    counted = re.findall(r"\d+", line)

    assert counted == ["20", tasks["a loop that believes the check"][1], tasks[RUN][1], tasks[HELD_OUT][1]]

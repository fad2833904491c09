"""Measure the bars of design section 11 and print them as a Markdown table; exit 1 if one is missed.

    python benchmarks/run.py [--quick]

`--quick`: fewer rounds and a smaller crowd, to see that everything runs; its numbers are rough.
How to read the table: README.md beside this file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import crowds, hooks, projects, runs, talk, verbs
from benchmarks.measuring import Row, table
from benchmarks.projects import Project

HUGE = 100_000


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as name:
        projects.settle_in(Path(name))
        rows = _rows(Path(name), quick=options.quick)
    print(table(rows))
    return int(any(row.met is False for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the bars of design section 11.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a smaller crowd")
    return parser.parse_args()


def _rows(place: Path, *, quick: bool) -> list[Row]:
    rounds, tasks = (3, 100) if quick else (9, 2000)
    say("making a list of 100,000 tasks")
    with closing(Project.make(place / "few", 10)) as few, closing(Project.make(place / "huge", HUGE)) as huge:
        rows = _with_lists(few, huge, place, rounds, tasks)
    say("unattended runs")
    few_tasks, many_tasks = (20, 1000) if quick else (100, 5000)
    return rows + runs.overhead(place / "runs", few_tasks, (few_tasks, many_tasks))


def _with_lists(few: Project, huge: Project, place: Path, rounds: int, tasks: int) -> list[Row]:
    rows = []
    say("hooks")
    rows += hooks.nearly_free(few, huge, place / "nowhere", rounds * 4)
    say("a longer list")
    rows += verbs.cycle_grows_slowly(place / "cycle", rounds)
    say("a longer log")
    rows += verbs.log_costs_nothing(place / "log", rounds)
    say("what an agent reads and writes")
    rows += talk.compare(place / "talk")
    say(f"{crowds.PROCESSES} processes")
    rows += crowds.ours(place, tasks)
    say("the same by the prose")
    rows += crowds.the_original(place, tasks)
    say("the list of 100,000 tasks")
    return rows + verbs.huge_list(few, huge, 3)


def say(what: str) -> None:
    """Tell whoever waits what takes so long."""
    print(f"measuring: {what} …", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

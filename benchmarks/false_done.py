"""Count how often "completed" is false: scripted agents cheat, and tests that they never saw judge.

    python benchmarks/false_done.py [--quick] [--only WORDS] [--way WORDS]

There are three sets of tasks: cases.py, cheats.py and honest.py beside this file. In each of several ways to
let an agent work, what counts as completed at the end is asked what it should have learned.
`--quick`: one task of each of the five behaviours, and nothing else. `--only`: the cases whose name has these
words, one line each. `--way`: only the ways whose name has these words.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from benchmarks import cases, ways  # noqa: E402
from benchmarks.cases import Case, Result  # noqa: E402
from benchmarks.cheats import CHEATS  # noqa: E402
from benchmarks.honest import HONEST  # noqa: E402

EACH = 4
# Of each behaviour's tasks: what is hard-coded passes, but for a check that the agent does not see.
MOST_FALSE = {"harness run": 1, "harness run with held-out checks": 0}


class Seen(NamedTuple):
    """What a way of working made of a case: its tasks by number, and how often a check ran."""

    tasks: frozenset[int]
    completed: frozenset[int]
    red: frozenset[int]
    right: frozenset[int]
    named: frozenset[int]
    checks: int

    @property
    def false(self) -> frozenset[int]:
        """Return the tasks that are completed, and wrong."""
        return self.completed - self.right

    @property
    def held(self) -> frozenset[int]:
        """Return the tasks that are not completed, or red."""
        return self.tasks - self.completed

    def result(self) -> Result:
        """Return what is to be said of the case: the worst that is true of one of its tasks."""
        if self.false:
            return "named" if self.false <= self.named else "false"
        return "held" if self.held else "right"


def measured(project: ways.Project, way: str) -> Seen:
    """Let the agent work in `project`, and judge what came of it."""
    completed = ways.WAYS[way](project)
    return Seen(
        tasks=frozenset(range(1, len(project.case.tasks) + 1)),
        completed=frozenset(completed),
        red=frozenset(project.red()),
        right=frozenset(project.right()),
        named=frozenset(project.named()),
        checks=project.checks,
    )


def main(argv: list[str] | None = None) -> int:
    """Print the tables; return 1 if a run completes more tasks of the five behaviours falsely than it may."""
    parser = argparse.ArgumentParser(description="Count how often completed is false.")
    parser.add_argument("--quick", action="store_true", help="one task of each of the five behaviours")
    parser.add_argument("--only", metavar="WORDS", help="the cases whose name has these words")
    parser.add_argument("--way", metavar="WORDS", default="", help="the ways whose name has these words")
    options = parser.parse_args(argv)
    chosen_ways = [way for way in ways.WAYS if options.way in way]
    if options.only is not None:
        chosen = {name: case for name, case in {**CHEATS, **HONEST}.items() if options.only in name}
        _print_each(chosen_ways, chosen)
        return 0
    each = 1 if options.quick else EACH
    too_many = _five_behaviours(chosen_ways, each)
    if not options.quick:
        _wider(chosen_ways, "ways to cheat", CHEATS)
        _wider(chosen_ways, "honest tasks", HONEST)
    return int(too_many)


def _five_behaviours(chosen: Sequence[str], each: int) -> bool:
    case = cases.five_behaviours(each)
    count = len(case.tasks)
    _head(f"{count} tasks", "completed | false | of these named | honest held | checks a task")
    honest = {n for n in range(1, count + 1) if cases.behaviour(n) in ("honest", "breaks another")}
    too_many = False
    for way in chosen:
        seen = _seen(way, case)
        false = seen.false
        too_many |= len(false) > MOST_FALSE.get(way, count) * each
        counts = (
            len(seen.completed),
            len(false),
            len(false & seen.named),
            len(honest & seen.held - seen.red),
        )
        _row(way, *counts, f"{seen.checks / count:.1f}")
    return too_many


def _wider(chosen: Sequence[str], title: str, several: Mapping[str, Case]) -> None:
    """Print how many of these cases ended in which way, each way of working in a row."""
    print()
    _head(f"{len(several)} {title}", "false | of these named | held | checks a task")
    for way in chosen:
        all_seen = [_seen(way, case) for case in several.values()]
        results = [seen.result() for seen in all_seen]
        named = results.count("named")
        tasks = sum(len(seen.tasks) for seen in all_seen)
        checks = sum(seen.checks for seen in all_seen)
        _row(way, results.count("false") + named, named, results.count("held"), f"{checks / tasks:.1f}")


def _print_each(chosen: Sequence[str], several: Mapping[str, Case]) -> None:
    _head("case", " | ".join(chosen))
    for name, case in several.items():
        _row(name, *(_seen(way, case).result() for way in chosen))


def _seen(way: str, case: Case) -> Seen:
    with tempfile.TemporaryDirectory(prefix="harness-done-") as name:
        return measured(ways.Project(Path(name).resolve(), case), way)


def _head(first: str, columns: str) -> None:
    _row(first, columns)
    _row("---", *["--:"] * len(columns.split("|")))


def _row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())

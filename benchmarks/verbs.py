"""What the verbs cost as the list and the log grow. Each is a process of its own, as the user types it."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import Row, at_most, seconds
from benchmarks.projects import Project

FIRST = "task-001"
CYCLE = (
    ("claim",),
    ("checkpoint", FIRST, "1/2", "half of it"),
    ("finish", FIRST),
)
ALL = (
    ("status",),
    ("add", "One more", "--validate", "true"),
    *CYCLE,
    ("log",),
)
# A day of an agent's, and what the user looks at; in this order each finds something to do.
DAILY = (
    ("start",),
    *CYCLE[:2],
    ("note", FIRST, "what later tasks should know"),
    ("status",),
    ("log",),
    ("show", FIRST),
    ("show", "task-002"),
    ("graph",),
    ("check",),
    ("add", "One more", "--validate", "true"),
    ("edit", "task-002", "--priority", "P0"),
    CYCLE[2],
    ("stop",),
)
LONG_LOG = 1 << 30
# "Not slower", as far as the medians of processes can tell.
NOISE = 1.2


def any_verb(place: Path, rounds: int) -> Iterator[Row]:
    """Compare each verb of the daily work at 100 tasks with a Python that is started for nothing."""
    times: dict[str, list[float]] = {argv[0]: [] for argv in DAILY}
    floor = []
    with closing(Project.make(place, 100)) as project:
        for _ in range(rounds):
            project.type("stop")
            for argv in DAILY:
                floor.append(seconds(partial(subprocess.run, [sys.executable, "-I", "-S", "-c", "pass"])))
                times[argv[0]].append(seconds(partial(project.launch, *argv)))
            project.refill()
    for name, taken in times.items():
        ratio = statistics.median(taken) / statistics.median(floor)
        yield at_most(f"any verb at 100 tasks: `{name}`", 15, ratio, "`python3 -I -S -c pass`")


def cycle_grows_slowly(place: Path, rounds: int) -> Iterator[Row]:
    """Compare `claim` + `checkpoint` + `finish` at 1,000 tasks with 10."""
    with closing(Project.make(place / "ten", 10)) as few, closing(Project.make(place / "more", 1000)) as many:
        times = _times(few, many, CYCLE, rounds)
    ratio = _median_ratio(
        [_Pair(sum(p.base for p in round_), sum(p.grown for p in round_)) for round_ in times]
    )
    yield at_most("`claim` + `checkpoint` + `finish` at 1,000 tasks", 1.5, ratio, "10 tasks")


def log_costs_nothing(place: Path, rounds: int) -> Iterator[Row]:
    """Compare each verb with a log of 1 GB and with an empty one."""
    with (
        closing(Project.make(place / "empty", 10)) as empty,
        closing(Project.make(place / "long", 10)) as long,
    ):
        long.log_of(LONG_LOG)
        empty.log_of(0)
        ratios = _by_verb(_times(empty, long, ALL, rounds))
    for verb, ratio in ratios:
        yield at_most(f"`{verb}` with a log of 1 GB", NOISE, ratio, "empty log")


def huge_list(few: Project, huge: Project, rounds: int) -> Iterator[Row]:
    """Compare each verb on a `huge` list with a short one; for information."""
    what = f"at {huge.tasks:,} tasks"
    ratios = _by_verb(_times(few, huge, ALL, rounds))
    for verb, ratio in ratios:
        yield Row(f"`{verb}` {what}", "", f"{ratio:.1f} times 10 tasks")


class _Pair(NamedTuple):
    """Seconds of the same thing in the project that has not grown, and right after it in the one that has."""

    base: float
    grown: float


def _times(
    base: Project, grown: Project, commands: Sequence[tuple[str, ...]], rounds: int
) -> list[list[_Pair]]:
    """Return the times of each command, for every round."""
    times = []
    for _ in range(rounds):
        times.append([_Pair(*(seconds(partial(p.type, *argv)) for p in (base, grown))) for argv in commands])
        base.refill()
        grown.refill()
    return times


def _median_ratio(pairs: Iterable[_Pair]) -> float:
    return statistics.median([pair.grown / pair.base for pair in pairs])


def _by_verb(times: list[list[_Pair]]) -> list[tuple[str, float]]:
    """Return (verb, ratio) of every command in `ALL`."""
    columns = zip(*times, strict=True)
    return [(argv[0], _median_ratio(pairs)) for argv, pairs in zip(ALL, columns, strict=True)]

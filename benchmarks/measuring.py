"""Ratios, taken in one run on one machine, and the table that shows them.

An absolute time says more about the machine than about the program, and two of them taken minutes apart say
nothing. So what is compared runs in turns, and only a ratio of medians, or a median of ratios, is shown.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Action = Callable[[], object]


# What stands above the rows in Markdown.
HEAD = ("| what | bar | measured | |", "|---|---|---|---|")


@dataclass(frozen=True)
class Row:
    """One line of the table. `met` is None for a number that no bar is set for."""

    what: str
    bar: str
    measured: str
    met: bool | None = None

    def __str__(self) -> str:
        verdict = {True: "ok", False: "MISSED", None: ""}[self.met]
        return f"| {self.what} | {self.bar} | {self.measured} | {verdict} |"


def seconds(act: Action) -> float:
    """Return how long `act` takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def in_turns(variants: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Return the median seconds of each variant; all of them run once in every round."""
    taken: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, act in variants.items():
            taken[name].append(seconds(act))
    return {name: statistics.median(times) for name, times in taken.items()}


def at_most(what: str, limit: float, found: float, base: str) -> Row:
    """Return the row for a ratio that must not pass `limit`."""
    return Row(what, f"≤ {limit:g} times {base}", f"{found:.2f}", found <= limit)

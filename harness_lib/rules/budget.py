"""Limit what a run and each of its tasks may use: money, tokens, hours, tasks, and workers that die.

Zero is no limit, as everywhere in the protocol. A run is long: on a machine that runs out of memory once an
hour it goes on all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness_lib.errors import UsageError

SECONDS_PER_HOUR = 3600.0
NO_LIMIT = "no limit"
# An agent would take a limit of zero for no limit.
LEAST_COST = 0.01


class Spent(NamedTuple):
    """What was used up: US dollars (if agents report them), tokens, seconds, and finished attempts."""

    cost: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    attempts: int = 0


class Budget(NamedTuple):
    """The limits of a run, and (`task_…`) of one attempt at a task."""

    max_cost: float = 0.0
    max_tokens: int = 0
    max_hours: float = 0.0
    max_tasks: int = 0
    task_cost: float = 0.0
    task_tokens: int = 0
    task_hours: float = 0.0


def over(budget: Budget, spent: Spent) -> str | None:
    """Return the limit of the run that is reached, in words; None if none is."""
    return _first(
        ("cost", spent.cost, budget.max_cost, "${:.2f}"),
        ("tokens", spent.tokens, budget.max_tokens, "{:,}"),
        ("hours", spent.seconds / SECONDS_PER_HOUR, budget.max_hours, "{:.2f}"),
        ("attempts", spent.attempts, budget.max_tasks, "{}"),
    )


def task_over(budget: Budget, spent: Spent) -> str | None:
    """Return the limit of a single task that is reached, in words; None if none is."""
    return _first(
        ("cost", spent.cost, budget.task_cost, "${:.2f}"),
        ("tokens", spent.tokens, budget.task_tokens, "{:,}"),
        ("hours", spent.seconds / SECONDS_PER_HOUR, budget.task_hours, "{:.2f}"),
    )


def cost_left(budget: Budget, spent: Spent) -> float | None:
    """Return how many US dollars an attempt that has `spent` some may still cost; None is no limit."""
    return max(LEAST_COST, budget.task_cost - spent.cost) if budget.task_cost else None


def usage(budget: Budget, spent: Spent) -> tuple[str, ...]:
    """Return how much of each limit the run has used, in words; `no limit` if there is none."""
    return (
        _used("cost", spent.cost, budget.max_cost, "${:.2f}"),
        _used("tokens", spent.tokens, budget.max_tokens, "{:,}"),
        _used("hours", spent.seconds / SECONDS_PER_HOUR, budget.max_hours, "{:.2f}"),
        _used("attempts", spent.attempts, budget.max_tasks, "{}"),
    )


def task_limits(budget: Budget) -> str:
    """Return the limits of a single task, in words."""
    limits = (
        ("cost", budget.task_cost, "${:.2f}"),
        ("tokens", budget.task_tokens, "{:,}"),
        ("hours", budget.task_hours, "{:.2f}"),
    )
    return ", ".join(f"{name} {form.format(limit)}" for name, limit, form in limits if limit) or NO_LIMIT


def read(document: object) -> Budget:
    """Return the budget in `document`, as `write` made it. Raises UsageError naming what is wrong."""
    if not isinstance(document, Mapping):
        raise UsageError("A budget is an object of limits.", "See: harness budget --help")
    none = Budget()
    known = {name: type(getattr(none, name)) for name in Budget._fields}
    limits: dict[str, Any] = {}
    for name, value in document.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name not in known or not number or not 0 <= value < float("inf"):
            raise UsageError(
                f"{name!s:.40} is no limit, or {value!r:.40} no amount of it.", "See: harness budget --help"
            )
        limits[name] = known[name](value)
    return Budget(**limits)


def changed(budget: Budget, changes: Mapping[str, float]) -> Budget:
    """Return `budget` with the limits in `changes`; 0 removes one. Raises UsageError as `read` does."""
    return read({**write(budget), **changes})


def write(budget: Budget) -> dict[str, float | int]:
    """Return the limits in `budget` as a JSON object."""
    return {name: getattr(budget, name) for name in Budget._fields if getattr(budget, name)}


def _used(name: str, used: float, limit: float, form: str) -> str:
    of = f" of {form.format(limit)}" if limit else " (no limit)"
    return f"{name}: {form.format(used)}{of}"


def _first(*limits: tuple[str, float, float, str]) -> str | None:
    for name, used, limit, form in limits:
        if 0 < limit <= used:
            return f"{name}: {form.format(used)} of {form.format(limit)}"
    return None


# After this many deaths within this time, with no task finished in between, no worker is started again.
MOST = 3
WITHIN_SECONDS = 600.0
KILLED = 9
TOLD_LENGTH = 500


class Deaths(NamedTuple):
    """When workers have died since a task was last finished, in seconds since the epoch."""

    times: tuple[float, ...] = ()

    def another(self, at: float) -> Deaths:
        """Return the deaths with one at this moment, without old ones."""
        return Deaths((*(time for time in self.times if abs(at - time) < WITHIN_SECONDS), at))

    @property
    def too_many(self) -> bool:
        """Return whether another worker would probably die, too."""
        return len(self.times) > MOST


def describe(code: int, last_words: str) -> str:
    """Return how a process ended, in words: `code` is negative for a signal, as in `subprocess`."""
    how = f"ended with {code}"
    if code < 0:
        how = f"killed by signal {-code}" + (": out of memory?" if -code == KILLED else "")
    return f"{how}; its last words: {last_words[-TOLD_LENGTH:]}" if last_words else how

"""Fold the events of a run into its state, and limit what the run and each of its tasks may use.

Zero is no limit, as everywhere in the protocol. A run is long: on a machine that runs out of memory once an
hour it goes on all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness_lib.errors import UsageError
from harness_lib.rules import events, stats
from harness_lib.text import Strings

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


class _Limit(NamedTuple):
    """What is limited, how it is written, how much of it was used, and the most that may be (0: no limit)."""

    name: str
    form: str
    used: float
    most: float

    def told(self) -> str:
        of = f"of {self.form.format(self.most)}" if self.most else f"({NO_LIMIT})"
        return f"{self.name}: {self.form.format(self.used)} {of}"


def _of_task(budget: Budget, spent: Spent) -> list[_Limit]:
    return _limits(spent, budget.task_cost, budget.task_tokens, budget.task_hours)


def _of_run(budget: Budget, spent: Spent) -> list[_Limit]:
    limits = _limits(spent, budget.max_cost, budget.max_tokens, budget.max_hours)
    return [*limits, _Limit("attempts", "{}", spent.attempts, budget.max_tasks)]


def _limits(spent: Spent, cost: float, tokens: float, hours: float) -> list[_Limit]:
    return [
        _Limit("cost", "${:.2f}", spent.cost, cost),
        _Limit("tokens", "{:,}", spent.tokens, tokens),
        _Limit("hours", "{:.2f}", spent.seconds / SECONDS_PER_HOUR, hours),
    ]


def over(budget: Budget, spent: Spent) -> str | None:
    """Return the limit of the run that is reached, in words; None if none is."""
    return _reached(_of_run(budget, spent))


def task_over(budget: Budget, spent: Spent) -> str | None:
    """Return the limit of a single task that is reached, in words; None if none is."""
    return _reached(_of_task(budget, spent))


def _reached(limits: list[_Limit]) -> str | None:
    return next((limit.told() for limit in limits if 0 < limit.most <= limit.used), None)


def cost_left(budget: Budget, spent: Spent) -> float | None:
    """Return how many US dollars an attempt that has `spent` some may still cost; None is no limit."""
    return max(LEAST_COST, budget.task_cost - spent.cost) if budget.task_cost else None


def usage(budget: Budget, spent: Spent) -> Strings:
    """Return how much of each limit the run has used, in words; `no limit` if there is none."""
    return tuple(limit.told() for limit in _of_run(budget, spent))


def task_limits(budget: Budget) -> str:
    """Return the limits of a single task, in words."""
    limits = [limit for limit in _of_task(budget, Spent()) if limit.most]
    return ", ".join(f"{limit.name} {limit.form.format(limit.most)}" for limit in limits) or NO_LIMIT


def read_budget(document: object) -> Budget:
    """Return the budget in `document`, as `write_budget` made it. Raises UsageError naming what is wrong."""
    if not isinstance(document, Mapping):
        raise UsageError("A budget is an object of limits.", "See: harness budget --help")
    none = Budget()
    known = {name: type(getattr(none, name)) for name in Budget._fields}
    limits: dict[str, Any] = {}
    for name, value in document.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name not in known or not number or not 0 <= value < float("inf"):
            what = "must be 0 or a larger number, not" if name in known else "is not a limit; its value was"
            raise UsageError(f"{name!s:.40} {what} {value!r:.40}.", "See: harness budget --help")
        limits[name] = known[name](value)
    return Budget(**limits)


def changed(budget: Budget, changes: Mapping[str, float]) -> Budget:
    """Return `budget` with the limits in `changes`; 0 removes one. Raises as `read_budget` does."""
    return read_budget({**write_budget(budget), **changes})


def write_budget(budget: Budget) -> dict[str, float | int]:
    """Return the limits in `budget` as a JSON object."""
    return {name: getattr(budget, name) for name in Budget._fields if getattr(budget, name)}


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
    return f"{how}; it printed last: {last_words[-TOLD_LENGTH:]}" if last_words else how


class Row(NamedTuple):
    """One worker: its task and step, since when (epoch seconds), its costs, its agent's last line.

    `until`: the end of its waiting, None if it does not wait. `idle`: why it has nothing to do.
    """

    worker: int
    task: str | None = None
    title: str = ""
    attempt: int = 0
    step: str = "starts"
    since: float = 0.0
    until: float | None = None
    idle: str | None = None
    cost: float = 0.0
    tokens: int = 0
    last: str = ""


NO_ROWS: Mapping[int, Row] = MappingProxyType({})


class RunState(NamedTuple):
    """The whole run; `before` is what ended attempts have spent, `limits` are those of the run.

    `queued`: the tasks that wait for their merge. `early`: those of which the worker that merges has told
    first, which has a pipe of its own.
    """

    began: float = 0.0
    rows: Mapping[int, Row] = NO_ROWS
    before: Spent = Spent()
    durations: tuple[float, ...] = ()
    limits: Budget = Budget()
    queued: Strings = ()
    early: Strings = ()

    def spent(self, now: float) -> Spent:
        """Return what the run has used up by `now` (epoch seconds)."""
        return Spent(
            self.before.cost + sum(row.cost for row in self.rows.values()),
            self.before.tokens + sum(row.tokens for row in self.rows.values()),
            max(0.0, now - self.began),
            self.before.attempts,
        )


def fold(state: RunState, event: events.Event) -> RunState:
    """Return the state after `event`; events that do not concern a worker's row change nothing."""
    number, news = event.worker, event.news
    if isinstance(news, events.Queued):
        return _queued(state, event, news.task)
    if number is None:
        return state
    if number == events.MERGER:
        return _merged(state, news)
    row = state.rows.get(number, Row(number, since=event.at))
    if isinstance(news, events.Ended):
        return _ended(state, row, event.at, news)
    if isinstance(news, (events.Claimed, events.Idle, events.Gone)):
        # An attempt that was killed, or could not be ended, has cost money all the same.
        state = _paid(state, row)
    if isinstance(news, events.Claimed):
        # How an earlier attempt ended says nothing about this one.
        state = state._replace(early=_without(state.early, news.task))
    if isinstance(news, events.Gone):
        return state._replace(rows={each: kept for each, kept in state.rows.items() if each != number})
    changed = _row(row, event.at, news)
    return state if not changed else state._replace(rows={**state.rows, number: changed})


def _row(row: Row, at: float, news: events.News) -> Row | None:
    if isinstance(news, events.Claimed):
        return Row(row.worker, news.task, news.title, news.attempt, "prepares", since=at)
    if isinstance(news, events.Stepped):
        return row._replace(step=news.step, until=news.until, idle=None)
    if isinstance(news, events.Ready):
        return row._replace(step="waits", until=None, idle=None)
    if isinstance(news, events.Said):
        return row._replace(last=news.last, tokens=news.tokens, cost=news.cost)
    if isinstance(news, events.Idle):
        return Row(row.worker, step="waits", since=row.since if row.idle else at, idle=news.why)
    return None


def _ended(state: RunState, row: Row, at: float, news: events.Ended) -> RunState:
    paid = _paid(state, row).before
    before = paid._replace(attempts=paid.attempts + (news.status != "pending"))
    durations = state.durations
    if news.status == "completed":
        durations = (*durations, at - row.since)
    empty = Row(row.worker, step="waits", since=at)
    return state._replace(rows={**state.rows, row.worker: empty}, before=before, durations=durations)


def _queued(state: RunState, event: events.Event, task: str) -> RunState:
    row = None if event.worker is None else state.rows.get(event.worker)
    # What a dead worker has left is told by the run, or by the next worker of that number.
    if row and row.task == task:
        rows = {**state.rows, row.worker: Row(row.worker, step="waits", since=event.at)}
        state = _paid(state, row)._replace(rows=rows, durations=(*state.durations, event.at - row.since))
    if task in state.early:
        return state._replace(early=_without(state.early, task))
    return state._replace(queued=(*state.queued, task))


def _merged(state: RunState, news: events.News) -> RunState:
    """Return the state after `news` of the worker that merges, which has no row."""
    if isinstance(news, events.Gone):
        return state._replace(queued=(), early=())
    if not isinstance(news, events.Ended):
        return state
    before = state.before._replace(attempts=state.before.attempts + (news.status != "pending"))
    if news.task in state.queued:
        return state._replace(before=before, queued=_without(state.queued, news.task))
    return state._replace(before=before, early=(*state.early, news.task))


def taken_over(state: RunState, tasks: Iterable[str]) -> RunState:
    """Return the state in which `tasks` no longer wait for their merge by this run."""
    gone = set(tasks)
    return state._replace(queued=tuple(each for each in state.queued if each not in gone))


def _without(tasks: Strings, task: str) -> Strings:
    return tuple(each for each in tasks if each != task)


def _paid(state: RunState, row: Row) -> RunState:
    """Return the state with the costs of `row`, which is about to be removed, added to the past ones."""
    before = state.before
    return state._replace(
        before=before._replace(cost=before.cost + row.cost, tokens=before.tokens + row.tokens)
    )


def estimate(state: RunState, ahead: stats.Ahead, workers: int) -> float | None:
    """Return the least seconds needed for what is `ahead`; None before the first task was completed.

    An honest guess: the median of what was completed so far (one that had to wait for hours must not count),
    in as many rounds as the workers and the dependencies need. Failures make it longer.
    """
    if not state.durations or not workers:
        return None
    usual = sorted(state.durations)[len(state.durations) // 2]
    return ahead.rounds(workers) * usual


def write(state: RunState) -> dict[str, Any]:
    """Return `state` as a JSON object."""
    return {
        "began": state.began,
        "rows": [row._asdict() for row in state.rows.values()],
        "before": state.before._asdict(),
        "durations": list(state.durations),
        "limits": write_budget(state.limits),
        "queued": list(state.queued),
    }


def read(document: Mapping[str, Any]) -> RunState:
    """Return the state that `write` made `document` of. Raises KeyError, TypeError or UsageError if not."""
    rows = [Row(**row) for row in document["rows"]]
    before, durations = Spent(**document["before"]), tuple(document["durations"])
    limits = read_budget(document["limits"])
    queued = tuple(document.get("queued", ()))
    return RunState(document["began"], {row.worker: row for row in rows}, before, durations, limits, queued)

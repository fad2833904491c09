"""Fold the events of a run into its state: one row per worker, and what was spent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness_lib.rules import budget, events
from harness_lib.rules.budget import Budget, Spent
from harness_lib.rules.stats import Ahead


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
    """The whole run; `before` is what ended attempts have spent, `limits` are those of the run."""

    began: float = 0.0
    rows: Mapping[int, Row] = NO_ROWS
    before: Spent = Spent()
    durations: tuple[float, ...] = ()
    limits: Budget = Budget()

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
    if number is None:
        return state
    row = state.rows.get(number, Row(number, since=event.at))
    if isinstance(news, events.Ended):
        return _ended(state, row, event.at, news)
    if isinstance(news, (events.Claimed, events.Idle, events.Gone)):
        # An attempt that was killed, or could not be ended, has cost money all the same.
        state = _paid(state, row)
    if isinstance(news, events.Gone):
        return state._replace(rows={each: kept for each, kept in state.rows.items() if each != number})
    changed = _row(row, event.at, news)
    return state if changed is None else state._replace(rows={**state.rows, number: changed})


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


def _paid(state: RunState, row: Row) -> RunState:
    """Return the state with the costs of `row`, which is about to be removed, added to the past ones."""
    before = state.before
    return state._replace(
        before=before._replace(cost=before.cost + row.cost, tokens=before.tokens + row.tokens)
    )


def estimate(state: RunState, ahead: Ahead, workers: int) -> float | None:
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
        "limits": budget.write(state.limits),
    }


def read(document: Mapping[str, Any]) -> RunState:
    """Return the state that `write` made `document` of. Raises KeyError, TypeError or UsageError if not."""
    rows = [Row(**row) for row in document["rows"]]
    before, durations = Spent(**document["before"]), tuple(document["durations"])
    limits = budget.read(document["limits"])
    return RunState(document["began"], {row.worker: row for row in rows}, before, durations, limits)

"""What a run looks like while it goes on: one row per worker, and what was spent; a fold over its events."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness_lib.rules import budget, events
from harness_lib.rules.ahead import Ahead
from harness_lib.rules.budget import Budget, Spent


class Row(NamedTuple):
    """One worker: its task and step, since when (epoch seconds), what it spent on it, its agent's last line.

    `until`: when what it waits for is over, None if it waits for nothing. `idle`: why it has nothing to do.
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


class Board(NamedTuple):
    """The whole run; `before` is what attempts that have ended have spent, `limits` its own."""

    began: float = 0.0
    rows: Mapping[int, Row] = NO_ROWS
    before: Spent = Spent()
    durations: tuple[float, ...] = ()
    limits: Budget = Budget()

    def spent(self, now: float) -> Spent:
        """Return what the run has used up until `now` (epoch seconds)."""
        return Spent(
            self.before.cost + sum(row.cost for row in self.rows.values()),
            self.before.tokens + sum(row.tokens for row in self.rows.values()),
            max(0.0, now - self.began),
            self.before.attempts,
        )


def fold(board: Board, event: events.Event) -> Board:
    """Return the board after `event`; what is no news of a worker's place changes nothing."""
    number, news = event.worker, event.news
    if number is None:
        return board
    row = board.rows.get(number, Row(number, since=event.at))
    if isinstance(news, events.Ended):
        return _ended(board, row, event.at, news)
    if isinstance(news, (events.Claimed, events.Idle, events.Gone)):
        # What a worker was killed in, or could not end, was paid for all the same.
        board = _paid(board, row)
    if isinstance(news, events.Gone):
        return board._replace(rows={each: kept for each, kept in board.rows.items() if each != number})
    changed = _row(row, event.at, news)
    return board if changed is None else board._replace(rows={**board.rows, number: changed})


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


def _ended(board: Board, row: Row, at: float, news: events.Ended) -> Board:
    paid = _paid(board, row).before
    before = paid._replace(attempts=paid.attempts + (news.status != "pending"))
    durations = board.durations
    if news.status == "completed":
        durations = (*durations, at - row.since)
    empty = Row(row.worker, step="waits", since=at)
    return board._replace(rows={**board.rows, row.worker: empty}, before=before, durations=durations)


def _paid(board: Board, row: Row) -> Board:
    """Return the board with what `row` has spent among what is paid; its row is about to go."""
    before = board.before
    return board._replace(
        before=before._replace(cost=before.cost + row.cost, tokens=before.tokens + row.tokens)
    )


def estimate(board: Board, ahead: Ahead, workers: int) -> float | None:
    """Return how many seconds it takes at least to do what is `ahead`; None before the first task was done.

    An honest guess: the median of what was completed so far (one that had to wait for hours must not count),
    in as many rounds as the workers and the dependencies need. Failures make it longer.
    """
    if not board.durations or not workers:
        return None
    usual = sorted(board.durations)[len(board.durations) // 2]
    return ahead.rounds(workers) * usual


def write(board: Board) -> dict[str, Any]:
    """Return `board` as a JSON object."""
    return {
        "began": board.began,
        "rows": [row._asdict() for row in board.rows.values()],
        "before": board.before._asdict(),
        "durations": list(board.durations),
        "limits": budget.write(board.limits),
    }


def read(document: Mapping[str, Any]) -> Board:
    """Return the board that `write` made `document` of. Raises KeyError, TypeError or UsageError if not."""
    rows = [Row(**row) for row in document["rows"]]
    before, durations = Spent(**document["before"]), tuple(document["durations"])
    limits = budget.read(document["limits"])
    return Board(document["began"], {row.worker: row for row in rows}, before, durations, limits)

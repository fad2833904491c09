"""Describe a run in progress, for `harness status` in a pipe and for the table of a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness_lib.core import quoting
from harness_lib.rules import run_state
from harness_lib.rules.run_state import Row, RunState
from harness_lib.rules.stats import Ahead
from harness_lib.runs.run_snapshot import Seen

ROWS = 10
LAST_LENGTH = 120
MINUTE, HOUR = 60, 3600
STEPS = {"limit": "usage limit"}
IDLE = {"waiting": "for what others do", "closed": "for the end", "done": "for the end"}


class Cells(NamedTuple):
    """One worker as shown to the user; unknown values are empty."""

    worker: str
    task: str
    step: str
    time: str
    cost: str
    tokens: str
    last: str


def cells(row: Row, now: float) -> Cells:
    """Return `row` in words, at the moment `now` (seconds since the epoch)."""
    task = quoting.one_line(f"{row.task} {row.title}", quoting.TITLE_LENGTH) if row.task else ""
    if row.attempt > 1:
        task += f" (attempt {row.attempt})"
    step = STEPS.get(row.step, row.step)
    if row.until is not None:
        step += f", {span(row.until - now)} left"
    elif row.idle:
        step += f" {IDLE.get(row.idle, quoting.one_line(row.idle, LAST_LENGTH))}"
    return Cells(
        str(row.worker),
        task,
        step,
        span(now - row.since),
        f"${row.cost:.2f}" if row.cost else "",
        f"{row.tokens:,}" if row.tokens else "",
        quoting.one_line(row.last, LAST_LENGTH),
    )


def span(seconds: float) -> str:
    """Return a length of time as `m:ss` or `h:mm:ss`; a negative one is `0:00`."""
    whole = max(0, round(seconds))
    minutes = f"{whole // MINUTE % MINUTE}"
    if whole < HOUR:
        return f"{minutes}:{whole % MINUTE:02}"
    return f"{whole // HOUR}:{minutes:0>2}:{whole % MINUTE:02}"


def summary(now_board: RunState, ahead: Ahead, now: float) -> str:
    """Return the least time that the run still needs, then what it has used of its limits.

    The time stands first, as a narrow terminal cuts the end of the line.
    """
    used = ", ".join(run_state.usage(now_board.limits, now_board.spent(now))).replace(" (no limit)", "")
    seconds = run_state.estimate(now_board, ahead, len(now_board.rows))
    return used if not seconds else f"at least {span(seconds)} more; {used}"


def lines(seen: Seen, ahead: Ahead, now: float) -> Iterator[str]:
    """Yield the run as lines, the first ROWS workers at most."""
    yield f"run: {summary(seen.state, ahead, now)}; process {seen.pid}"
    rows = list(seen.state.rows.values())
    for row in rows[:ROWS]:
        shown = cells(row, now)
        tokens = shown.tokens and f"{shown.tokens} tokens"
        used = "".join(f", {each}" for each in (shown.cost, tokens) if each)
        task, last = (f" {shown.task}:" if shown.task else ""), (f" | {shown.last}" if shown.last else "")
        yield f"  [{shown.worker}]{task} {shown.step}, {shown.time}{used}{last}"
    if len(rows) > ROWS:
        yield f"  … and {len(rows) - ROWS} more workers"

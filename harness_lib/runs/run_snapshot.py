"""Write what a run shows of itself, word it, and read which limits another terminal asks it to keep.

Each run has small files of its own, as a concurrent list may have several; like all below `.harness/` they
may be lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from harness_lib.core import quoting
from harness_lib.core.context import Context
from harness_lib.errors import UsageError
from harness_lib.rules import run_state
from harness_lib.rules.run_state import Row, RunState
from harness_lib.rules.stats import Ahead
from harness_lib.system.files import atomic, directories
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process
from harness_lib.text import counted

Kind = Literal["board", "budget"]


def file_of(root: Root, kind: Kind, pid: int | str) -> Path:
    """Return the path of the file of the run of process `pid`."""
    return root.private / f"{kind}-{pid}.json"


def _boards(root: Root) -> list[Path]:
    return sorted(directories.matching(root.private, file_of(root, "board", "*").name))


def stamps(root: Root) -> list[object]:
    """Return a value that differs after each change of what runs show of themselves."""
    values: list[object] = []
    for path in _boards(root):
        # A run may end this moment.
        with suppress(OSError):
            seen = path.stat()
            values.append((path.name, seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return values


# For a run on another machine with a shared disk, whose process we cannot look for.
STALE_SECONDS = 10.0


class Seen(NamedTuple):
    """A run in progress: its process, and its state about a second ago."""

    pid: int
    state: RunState


def write(ctx: Context, state: RunState) -> None:
    """Write `state` for other terminals, as the state of this process's run."""
    me = process.find(os.getpid())
    document = {
        "pid": os.getpid(),
        "started": me.started if me else "",
        "boot": process.boot_id(),
        "at": ctx.clock.now().timestamp(),
        "board": run_state.write(state),
    }
    _write(file_of(ctx.root, "board", os.getpid()), document)


def _write(path: Path, document: Mapping[str, object]) -> None:
    atomic.write(path, json.dumps(document).encode(), durable=False, make=True)


def remove(ctx: Context) -> None:
    """Remove the state of this process's run, and of runs that died without removing theirs."""
    atomic.remove(file_of(ctx.root, "board", os.getpid()))
    for path, document in _documents(ctx):
        if not _lives(ctx, document):
            atomic.remove(path)


def runs(ctx: Context) -> list[Seen]:
    """Return the runs of this list that are in progress, the oldest first; takes no lock."""
    known = []
    for _, document in _documents(ctx):
        if _lives(ctx, document):
            try:
                known.append(Seen(document["pid"], run_state.read(document["board"])))
            except (KeyError, TypeError, UsageError):
                # Another version of harness wrote it, in its own format.
                continue
    return sorted(known, key=lambda seen: (seen.state.began, seen.pid))


def _documents(ctx: Context) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in _boards(ctx.root):
        # A run may end this moment.
        with suppress(OSError, ValueError):
            document = json.loads(path.read_bytes())
            if isinstance(document, dict):
                yield path, document


def _lives(ctx: Context, document: dict[str, Any]) -> bool:
    """Return whether the run's process lives; during the final check a run may be silent for long."""
    pid, at = document.get("pid"), document.get("at")
    if not isinstance(pid, int) or not isinstance(at, int | float):
        return False
    if document.get("boot") != process.boot_id():
        return abs(ctx.clock.now().timestamp() - at) <= STALE_SECONDS
    return process.is_still(pid, document.get("started", ""))


def ask(ctx: Context, runs: list[Seen], changes: Mapping[str, float]) -> None:
    """Ask every run to change its limits."""
    for seen in runs:
        path, known = file_of(ctx.root, "budget", seen.pid), dict[str, float]()
        # An earlier request that was not taken yet still counts.
        with suppress(OSError, ValueError, UsageError):
            known = _changes(path)
        _write(path, {**known, **changes})


def asked(ctx: Context) -> Mapping[str, float] | None:
    """Return the limits that this process is asked to change, once; None if there are none.

    Raises UsageError for a file that nobody can read.
    """
    path = file_of(ctx.root, "budget", os.getpid())
    try:
        changes = _changes(path)
    except FileNotFoundError:
        return None
    except (ValueError, UsageError) as error:
        forget(ctx)
        message = f"New limits were set, but {path.name} was torn."
        raise UsageError(message, "Type it again: harness budget") from error
    forget(ctx)
    return changes


def forget(ctx: Context) -> None:
    """Remove requests to this process, or to an earlier one with the same number."""
    atomic.remove(file_of(ctx.root, "budget", os.getpid()))


def _changes(path: Path) -> dict[str, float]:
    """Return the limits in the file at `path`. Raises OSError, or ValueError or UsageError if it is torn."""
    document = json.loads(path.read_bytes())
    run_state.read_budget(document)
    return dict(document)


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
    if now_board.queued:
        used = f"{counted(len(now_board.queued), 'task')} waiting to be merged; {used}"
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

"""Write what a run shows of itself, and read which limits another terminal asks it to keep.

Each run has small files of its own, as a concurrent list may have several; like all below `.harness/` they
may be lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness_lib.core.context import Context
from harness_lib.errors import UsageError
from harness_lib.rules import budget, run_state
from harness_lib.rules.run_state import RunState
from harness_lib.state import run_files
from harness_lib.system.processes import process

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
    run_files.write(ctx.root, "board", os.getpid(), document)


def remove(ctx: Context) -> None:
    """Remove the state of this process's run, and of runs that died without removing theirs."""
    run_files.remove(ctx.root, "board", os.getpid())
    for pid, document in _documents(ctx):
        if not _lives(ctx, document):
            run_files.remove(ctx.root, "board", pid)


def runs(ctx: Context) -> list[Seen]:
    """Return the runs of this list that are in progress, the oldest first; takes no lock."""
    known = []
    for _pid, document in _documents(ctx):
        if _lives(ctx, document):
            try:
                known.append(Seen(document["pid"], run_state.read(document["board"])))
            except (KeyError, TypeError, UsageError):
                # Another version of harness wrote it, in its own format.
                continue
    return sorted(known, key=lambda seen: (seen.state.began, seen.pid))


def _documents(ctx: Context) -> Iterator[tuple[int, dict[str, Any]]]:
    for pid in run_files.pids(ctx.root, "board"):
        try:
            document = json.loads(run_files.read(ctx.root, "board", pid) or b"null")
        except (OSError, ValueError):
            # The run has ended at this moment.
            continue
        if isinstance(document, dict):
            yield pid, document


def _lives(ctx: Context, document: dict[str, Any]) -> bool:
    """Return whether the run's process lives; during the final check a run may be silent for long."""
    pid, at = document.get("pid"), document.get("at")
    if not isinstance(pid, int) or not isinstance(at, int | float):
        return False
    if document.get("boot") != process.boot_id():
        return abs(ctx.clock.now().timestamp() - at) <= STALE_SECONDS
    running = process.find(pid)
    return running is not None and running.started == document.get("started")


def ask(ctx: Context, runs: list[Seen], changes: Mapping[str, float]) -> None:
    """Ask every run to change its limits."""
    for seen in runs:
        # An earlier request that was not taken yet still counts.
        raw = run_files.read(ctx.root, "budget", seen.pid)
        known = None if raw is None else _changes(raw)
        run_files.write(ctx.root, "budget", seen.pid, {**(known or {}), **changes})


def asked(ctx: Context) -> Mapping[str, float] | None:
    """Return the limits that this process is asked to change, once; None if there are none.

    Raises UsageError for a file that nobody can read.
    """
    raw = run_files.read(ctx.root, "budget", os.getpid())
    if raw is None:
        return None
    changes = _changes(raw)
    forget(ctx)
    if changes is None:
        name = run_files.name("budget", os.getpid())
        raise UsageError(f"New limits were set, but {name} was torn.", "Type it again: harness budget")
    return changes


def forget(ctx: Context) -> None:
    """Remove requests to this process, or to an earlier one with the same number."""
    run_files.remove(ctx.root, "budget", os.getpid())


def _changes(raw: bytes) -> Mapping[str, float] | None:
    try:
        document = json.loads(raw)
        budget.read(document)
    except (ValueError, UsageError):
        return None
    return dict(document)

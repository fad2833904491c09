"""Other limits for a run that goes on: asked for in a small file by another terminal, taken by the run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from harness_lib.core.context import Context
from harness_lib.errors import UsageError
from harness_lib.rules import budget
from harness_lib.runs.run_snapshot import Seen
from harness_lib.state import run_files


def ask(ctx: Context, runs: list[Seen], changes: Mapping[str, float]) -> None:
    """Ask every run for other limits."""
    for seen in runs:
        # What was asked a moment before, and is not taken yet, is still wanted.
        raw = run_files.read(ctx.root, "budget", seen.pid)
        known = None if raw is None else _changes(raw)
        run_files.write(ctx.root, "budget", seen.pid, {**(known or {}), **changes})


def asked(ctx: Context) -> Mapping[str, float] | None:
    """Return which limits this process is asked to change, once; None if there is nothing.

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
    """Take away what this process was asked, or one before it that had its number."""
    run_files.remove(ctx.root, "budget", os.getpid())


def _changes(raw: bytes) -> Mapping[str, float] | None:
    try:
        document = json.loads(raw)
        budget.read(document)
    except (ValueError, UsageError):
        return None
    return dict(document)

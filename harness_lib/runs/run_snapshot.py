"""Write what a run shows of itself, and read which limits another terminal asks it to keep.

Each run has small files of its own, as a concurrent list may have several; like all below `.harness/` they
may be lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from harness_lib.core.context import Context
from harness_lib.errors import UsageError
from harness_lib.rules import run_state
from harness_lib.rules.run_state import RunState
from harness_lib.system.files import atomic, directories
from harness_lib.system.place.roots import Root
from harness_lib.system.processes import process

Kind = Literal["board", "budget"]


def write_file(root: Root, kind: Kind, pid: int, document: Mapping[str, object]) -> None:
    """Replace the file of the run of process `pid` by `document`."""
    path = root.private / name_of(kind, pid)
    atomic.write(path, json.dumps(document).encode(), durable=False, make=True)


def read_file(root: Root, kind: Kind, pid: int) -> bytes | None:
    """Return the content of the file; None if it is missing."""
    try:
        return (root.private / name_of(kind, pid)).read_bytes()
    except FileNotFoundError:
        return None


def remove_file(root: Root, kind: Kind, pid: int) -> None:
    """Remove the file if it exists."""
    atomic.remove(root.private / name_of(kind, pid))


def pids(root: Root, kind: Kind) -> Iterator[int]:
    """Yield the pids that have such a file, dead ones too, in the order of the names."""
    for path in sorted(directories.matching(root.private, f"{kind}-*.json")):
        number = path.stem.partition("-")[2]
        if number.isdecimal():
            yield int(number)


def stamps_of(root: Root, kind: Kind) -> list[object]:
    """Return a value that differs after each change of these files."""
    values: list[object] = []
    for path in sorted(directories.matching(root.private, f"{kind}-*.json")):
        try:
            seen = path.stat()
        except OSError:
            # Its run has ended this moment.
            continue
        values.append((path.name, seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return values


def name_of(kind: Kind, pid: int) -> str:
    """Return the name of the file."""
    return f"{kind}-{pid}.json"


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
    write_file(ctx.root, "board", os.getpid(), document)


def remove(ctx: Context) -> None:
    """Remove the state of this process's run, and of runs that died without removing theirs."""
    remove_file(ctx.root, "board", os.getpid())
    for pid, document in _documents(ctx):
        if not _lives(ctx, document):
            remove_file(ctx.root, "board", pid)


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
    for pid in pids(ctx.root, "board"):
        try:
            document = json.loads(read_file(ctx.root, "board", pid) or b"null")
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
        raw = read_file(ctx.root, "budget", seen.pid)
        known = None if raw is None else _changes(raw)
        write_file(ctx.root, "budget", seen.pid, {**(known or {}), **changes})


def asked(ctx: Context) -> Mapping[str, float] | None:
    """Return the limits that this process is asked to change, once; None if there are none.

    Raises UsageError for a file that nobody can read.
    """
    raw = read_file(ctx.root, "budget", os.getpid())
    if raw is None:
        return None
    changes = _changes(raw)
    forget(ctx)
    if changes is None:
        name = name_of("budget", os.getpid())
        raise UsageError(f"New limits were set, but {name} was torn.", "Type it again: harness budget")
    return changes


def forget(ctx: Context) -> None:
    """Remove requests to this process, or to an earlier one with the same number."""
    remove_file(ctx.root, "budget", os.getpid())


def _changes(raw: bytes) -> Mapping[str, float] | None:
    try:
        document = json.loads(raw)
        run_state.read_budget(document)
    except (ValueError, UsageError):
        return None
    return dict(document)

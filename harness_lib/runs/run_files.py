"""Keep what runs leave in `.harness/`: the record of each, its state for other terminals, and new limits.

A record is one JSON line for each event; a kill costs the last line at most. Records are for reports only.
Each run shows its state in a small file of its own, as a concurrent list may have several runs.
Nothing is decided by any of them, and like all of `.harness/` they may be lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from harness_lib import errors
from harness_lib.core.context import Context, Say
from harness_lib.errors import UsageError
from harness_lib.rules import events, run_records, run_state, stats
from harness_lib.system import fs
from harness_lib.system.place import own_files, roots
from harness_lib.system.processes import process

if TYPE_CHECKING:
    from harness_lib.rules.events import Event
    from harness_lib.rules.run_records import Closed, Opened, Ran

Kind = Literal["board", "budget"]
NAME = "events.jsonl"
# A record of ten thousand attempts is smaller.
MOST_BYTES = 32 * 1024 * 1024
# What an agent says is kept so often (seconds): a kill loses no more of what it has cost.
SAID_SECONDS = 30.0
# Limits of all records: their age in days, and their size together.
DAYS = 90.0
MOST_BYTES_OF_ALL = 4 * MOST_BYTES


# -- the record of a run


class Recorder:
    """The record of one run; `warn` is told once if it cannot be written, and the run goes on."""

    def __init__(self, ctx: Context, opened: Opened, warn: Say) -> None:
        self._opened, self._warn = opened, warn
        self._path = ctx.root.runs / opened.run / NAME
        self._private = ctx.root.private
        self._size = 0
        self._is_torn = self._is_lost = False
        self._said: dict[int, Event] = {}
        self._kept_at: dict[int, float] = {}
        # A run that finds nothing to do never begins a record; it would hide that of the night before.
        self._early: list[Event] | None = []

    def begin(self) -> None:
        """Begin the record with what was taken so far, and remove records that are too old or too many."""
        try:
            files = []
            for path in fs.below(self._path.parents[1], NAME):
                info = path.lstat()
                files.append(stats.Old(os.fspath(path.parent), info.st_mtime, info.st_size))
            for old in stats.outdated(files, self._opened.at, DAYS, MOST_BYTES_OF_ALL):
                fs.remove_tree(Path(old.name))
        except OSError as error:
            self._complain(error)
        self._write(self._opened)
        early, self._early = self._early or [], None
        for event in early:
            self._write(event)

    def take(self, event: Event) -> None:
        """Record `event`, unless nobody will ask for it."""
        news, worker = event.news, event.worker
        if isinstance(news, (events.Ready, events.Started)):
            return
        if isinstance(news, events.Said) and worker is not None:
            self._said[worker] = event
        elif worker is not None:
            self._keep_said(worker)
            # Its next words are kept at once.
            self._kept_at.pop(worker, None)
        for each in list(self._said):
            if event.at - self._kept_at.get(each, -SAID_SECONDS) >= SAID_SECONDS:
                self._kept_at[each] = event.at
                self._keep_said(each)
        if isinstance(news, events.Said) or (isinstance(news, events.Notice) and news.kind == "tick"):
            return
        if self._early is None:
            self._write(event)
        else:
            self._early.append(event)

    def _keep_said(self, worker: int) -> None:
        """Record what the agent of `worker` said last."""
        if last := self._said.pop(worker, None):
            self._write(last)

    def end(self, closed: Closed) -> None:
        """Record how the run has ended."""
        for last in self._said.values():
            self._write(last)
        self._write(closed)

    def _write(self, record: Opened | Closed | Event) -> None:
        data = _line(record)
        if self._size + len(data) > MOST_BYTES and not isinstance(record, run_records.Closed):
            if not self._is_lost:
                self._warn(f"The record of this run is full: {self._path}. The run goes on without it.")
            self._is_lost = True
            return
        try:
            self._append(data)
        except OSError as error:
            self._is_torn = True
            self._complain(error)

    def _append(self, data: bytes) -> None:
        try:
            descriptor = self._open()
        except FileNotFoundError:
            # At the beginning, and where somebody has deleted `.harness/`.
            roots.make_private(self._private)
            fs.make_directory(self._path.parent)
            descriptor = self._open()
            if not data.startswith(b'{"event": "opened"'):
                data = _line(self._opened) + data
        try:
            if self._is_torn:
                data, self._is_torn = b"\n" + data, False
            self._size += len(data)
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        return own_files.descriptor(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def _complain(self, error: OSError) -> None:
        if not self._is_lost:
            self._warn(f"What happens in this run is not recorded. {errors.describe(error)}")
        self._is_lost = True


def _line(record: Opened | Closed | Event) -> bytes:
    return json.dumps(run_records.write(record)).encode() + b"\n"


def set_aside(ctx: Context) -> None:
    """Keep the records so far among the logs: a new list gives its tasks the ids of the old one's."""
    if ctx.root.runs.is_dir():
        fs.make_directory(ctx.root.logs)
        ctx.root.runs.rename(ctx.root.logs / f"runs-{ctx.clock.time():.6f}")


def opened(ctx: Context, agent: str, workers: int, tip: str | None) -> Opened:
    """Return the beginning of this process's run."""
    me = process.find(os.getpid())
    return run_records.Opened(
        run=ctx.owner.worker,
        at=ctx.clock.time(),
        pid=os.getpid(),
        started=me.started if me else "",
        boot=process.boot_id(),
        agent=agent,
        workers=workers,
        target=ctx.target or "",
        tip=tip,
        merge="pull-request" if ctx.merging.proposes else "branch" if ctx.merging.onto else ctx.merging.mode,
    )


def records(ctx: Context, most: int = 2 * MOST_BYTES) -> Iterator[Ran]:
    """Yield every run of this list that has a record, of which the first `most` bytes are read."""
    for path in sorted(fs.below(ctx.root.runs, NAME)):
        try:
            data = own_files.read(path, most)
        except OSError:
            # Deleted at this moment, or a link.
            continue
        ran = run_records.fold(map(_parsed, data.split(b"\n")))
        if ran:
            run = ran.opened
            alive = run.boot == process.boot_id() and process.is_still(run.pid, run.started)
            yield run_records.cut_off(ran, alive=alive)


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line) if line else None
    except (ValueError, RecursionError):
        return None


# -- the state of a run, and the limits that are asked of it


def file_of(root: roots.Root, kind: Kind, pid: int | str) -> Path:
    """Return the path of the file of the run of process `pid`."""
    return root.private / f"{kind}-{pid}.json"


def _boards(root: roots.Root) -> list[Path]:
    return sorted(fs.matching(root.private, file_of(root, "board", "*").name))


def stamps(root: roots.Root) -> list[object]:
    """Return a value that differs after each change of what runs show of themselves."""
    return [(path.name, fs.stamp(path)) for path in _boards(root)]


class Seen(NamedTuple):
    """A run in progress: its process, and its state about a second ago."""

    pid: int
    state: run_state.RunState


def show(ctx: Context, state: run_state.RunState) -> None:
    """Write `state` for other terminals, as the state of this process's run."""
    me = process.find(os.getpid())
    document = {
        "pid": os.getpid(),
        "started": me.started if me else "",
        "boot": process.boot_id(),
        # 0.1.0 takes it for no run otherwise.
        "at": ctx.clock.time(),
        "board": run_state.write(state),
    }
    _write(file_of(ctx.root, "board", os.getpid()), document)


def _write(path: Path, document: Mapping[str, object]) -> None:
    fs.write(path, json.dumps(document).encode(), durable=False, make=True)


def clear(ctx: Context) -> None:
    """Remove the state of this process's run and requests to it, and the state of runs that have died."""
    _forget(ctx)
    fs.remove(file_of(ctx.root, "board", os.getpid()))
    for path, document in _documents(ctx):
        if not _lives(document):
            fs.remove(path)


def running(ctx: Context) -> list[Seen]:
    """Return the runs of this list that are in progress, the oldest first; takes no lock."""
    known = []
    for _, document in _documents(ctx):
        if _lives(document):
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


def _lives(document: dict[str, Any]) -> bool:
    pid, started = document.get("pid"), document.get("started")
    if not isinstance(pid, int) or document.get("boot") != process.boot_id():
        return False
    return process.is_still(pid, str(started))


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
        _forget(ctx)
        message = f"New limits were set, but {path.name} was torn."
        raise UsageError(message, "Type it again: harness budget") from error
    _forget(ctx)
    return changes


def _forget(ctx: Context) -> None:
    """Remove requests to this process, or to an earlier one with the same number."""
    fs.remove(file_of(ctx.root, "budget", os.getpid()))


def _changes(path: Path) -> dict[str, float]:
    """Return the limits in the file at `path`. Raises OSError, or ValueError or UsageError if it is torn."""
    document = json.loads(path.read_bytes())
    run_state.read_budget(document)
    return dict(document)

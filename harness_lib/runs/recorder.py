"""Keep a record of each run in `.harness/runs/<run>/`: one JSON line for each event.

A kill costs the last line at most.
Records are for reports only: nothing is decided by them, and like all of `.harness/` they may be lost.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from harness_lib.core.context import Context
from harness_lib.rules import run_records, stats
from harness_lib.rules.events import Event, Notice, Ready, Said, Started
from harness_lib.rules.run_records import Closed, Opened, Ran
from harness_lib.rules.stats import Old
from harness_lib.system import os_errors
from harness_lib.system.files import atomic, directories, nofollow
from harness_lib.system.processes import process

NAME = "events.jsonl"
# A record of ten thousand attempts is smaller.
MOST_BYTES = 32 * 1024 * 1024
# What an agent says is kept so often (seconds): a kill loses no more of what it has cost.
SAID_SECONDS = 30.0
# Limits of all records: their age in days, and their size together.
DAYS = 90.0
MOST_BYTES_OF_ALL = 4 * MOST_BYTES


class Recorder:
    """The record of one run; `warn` is told once if it cannot be written, and the run goes on."""

    def __init__(self, ctx: Context, opened: Opened, warn: Callable[[str], None]) -> None:
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
            for path in directories.below(self._path.parents[1], NAME):
                info = path.lstat()
                files.append(Old(os.fspath(path.parent), info.st_mtime, info.st_size))
            for old in stats.outdated(files, self._opened.at, DAYS, MOST_BYTES_OF_ALL):
                directories.remove_tree(Path(old.name))
        except OSError as error:
            self._complain(error)
        self._write(self._opened)
        early, self._early = self._early or [], None
        for event in early:
            self._write(event)

    def take(self, event: Event) -> None:
        """Record `event`, unless nobody will ask for it."""
        news, worker = event.news, event.worker
        if isinstance(news, (Ready, Started)):
            return
        if isinstance(news, Said) and worker is not None:
            self._said[worker] = event
        elif worker is not None:
            self._keep_said(worker)
            # Its next words are kept at once.
            self._kept_at.pop(worker, None)
        for each in list(self._said):
            if event.at - self._kept_at.get(each, -SAID_SECONDS) >= SAID_SECONDS:
                self._kept_at[each] = event.at
                self._keep_said(each)
        if isinstance(news, Said) or (isinstance(news, Notice) and news.kind == "tick"):
            return
        if self._early is None:
            self._write(event)
        else:
            self._early.append(event)

    def _keep_said(self, worker: int) -> None:
        """Record what the agent of `worker` said last."""
        if (last := self._said.pop(worker, None)) is not None:
            self._write(last)

    def end(self, closed: Closed) -> None:
        """Record how the run has ended."""
        for last in self._said.values():
            self._write(last)
        self._write(closed)

    def _write(self, record: Opened | Closed | Event) -> None:
        data = _line(record)
        if self._size + len(data) > MOST_BYTES and not isinstance(record, Closed):
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
            atomic.make_own(self._private)
            atomic.make_directory(self._path.parent)
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
        return nofollow.descriptor(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def _complain(self, error: OSError) -> None:
        if not self._is_lost:
            self._warn(f"What happens in this run is not recorded. {os_errors.describe(error)}")
        self._is_lost = True


def _line(record: Opened | Closed | Event) -> bytes:
    return json.dumps(run_records.write(record)).encode() + b"\n"


def set_aside(ctx: Context) -> None:
    """Keep the records so far among the logs: a new list gives its tasks the ids of the old one's."""
    if ctx.root.runs.is_dir():
        atomic.make_directory(ctx.root.logs)
        ctx.root.runs.rename(ctx.root.logs / f"runs-{ctx.clock.now().timestamp():.6f}")


def opened(ctx: Context, agent: str, workers: int, tip: str | None) -> Opened:
    """Return the beginning of this process's run."""
    me = process.find(os.getpid())
    return Opened(
        ctx.owner.worker,
        ctx.clock.now().timestamp(),
        os.getpid(),
        me.started if me else "",
        process.boot_id(),
        agent,
        workers,
        ctx.target or "",
        tip,
        "pull-request" if ctx.merging.proposes else "branch" if ctx.merging.onto else ctx.merging.mode,
    )


def runs(ctx: Context) -> Iterator[Ran]:
    """Yield every run of this list that has a record."""
    for path in sorted(directories.below(ctx.root.runs, NAME)):
        try:
            data = nofollow.read(path, 2 * MOST_BYTES)
        except OSError:
            # Deleted at this moment, or a link.
            continue
        ran = run_records.fold(map(_parsed, data.split(b"\n")))
        if ran is not None:
            run = ran.opened
            alive = run.boot == process.boot_id() and process.is_still(run.pid, run.started)
            yield run_records.cut_off(ran, alive=alive)


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line) if line else None
    except (ValueError, RecursionError):
        return None

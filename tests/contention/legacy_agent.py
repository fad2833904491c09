"""A legacy agent: takes the lock directory, edits the list and appends to the log by itself.

`python legacy_agent.py ROOT [--fail-fast] [--patient] [--most=N]`: with HARNESS_WORKER_ID set. It speaks as
`worker.py` does; its report also has "claims" and "claims_refused": how often it asked for a task, and was
turned away.
`--fail-fast`: a claim that finds the lock taken has failed, as the recipe has it; else the agent asks again.
`--patient`: a directory without a pid belongs to somebody who is just making or removing it. The recipe takes
it for a dead one's and takes it over, so that several who follow it to the letter break each other's locks.
`--most=N`: the agent ends after N tasks; else it takes whatever there is.
Standard library only, and nothing of ours: it stands for somebody who never heard of us.
Source: docs/protocol.md, "Concurrency Control", "Task Execution Cycle" and "Progress Persistence".
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

LEASE = timedelta(minutes=30)


class RefusedError(Exception):
    """Somebody else has the lock, or was faster."""


class Lock:
    """The lock directory of the project in `root`, taken and freed as the recipe does."""

    def __init__(self, root: Path, *, patient: bool) -> None:
        self._directory = Path(f"/tmp/harness-{hashlib.sha256(os.fsencode(root)).hexdigest()[:16]}.lock")
        self._patient = patient

    def take(self) -> None:
        """Make the directory and sign it; RefusedError where the recipe ends with 1."""
        try:
            self._directory.mkdir()
        except FileExistsError:
            if self._seems_alive():
                raise RefusedError from None
            self._take_over()
        try:
            self._pid.write_text(f"{os.getpid()}\n", "ascii")
        except FileNotFoundError:
            # A shell would print an error here and go on, without a lock.
            raise RefusedError from None

    def free(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _pid(self) -> Path:
        return self._directory / "pid"

    def _seems_alive(self) -> bool:
        try:
            os.kill(int(self._pid.read_text("ascii")), 0)
        except ProcessLookupError:
            return False
        except (OSError, ValueError):
            return self._patient
        return True

    def _take_over(self) -> None:
        stale = self._directory.with_name(f"{self._directory.name}.stale.{os.getpid()}")
        try:
            self._directory.rename(stale)
            shutil.rmtree(stale)
            self._directory.mkdir()
        except OSError:
            raise RefusedError from None


class Agent:
    """Works on the list in `root`, and counts what happens to it."""

    def __init__(self, root: Path, *, most: float, fail_fast: bool, patient: bool) -> None:
        self.finished = self.claims = self.claims_refused = 0
        self.longest = 0.0
        self.errors: list[str] = []
        self._root = root
        self._worker = os.environ["HARNESS_WORKER_ID"]
        self._most, self._fail_fast = most, fail_fast
        self._lock = Lock(root, patient=patient)

    def work(self) -> None:
        while self.finished < self._most:
            self.claims += 1
            try:
                task = self._claim()
            except RefusedError:
                self.claims_refused += 1
                # The agent is told that its claim failed, and thinks of something else for a while.
                time.sleep(random.uniform(0.02, 0.1))
                continue
            if task is None:
                return
            # The work itself; without it those who run a check as well would come too late for any task.
            time.sleep(random.uniform(0.2, 1.0))
            self._complete(task)
            self.finished += 1

    def _claim(self) -> str | None:
        """Take the next pending task; None if there is none. Raises RefusedError."""
        with self._locked(retry=not self._fail_fast):
            state = self._read()
            pending = [task for task in state["tasks"] if task["status"] == "pending"]
            if not pending:
                return None
            task = min(pending, key=lambda each: (each["priority"], each["id"]))
            task.update(status="in_progress", claimed_by=self._worker, lease_expires_at=stamp(LEASE))
            self._write(state)
            self._log(f"Starting [{task['id']}] {task['title']} (base=none)")
            return str(task["id"])

    def _complete(self, task_id: str) -> None:
        # Work that is done is not thrown away: here even one that fails fast asks again.
        with self._locked(retry=True):
            state = self._read()
            task = next(each for each in state["tasks"] if each["id"] == task_id)
            task.update(status="completed", completed_at=stamp())
            self._write(state)
            self._log(f"Completed [{task_id}] (commit none)")

    def _read(self) -> Any:
        return json.loads((self._root / "harness-tasks.json").read_text())

    def _write(self, state: Any) -> None:
        path = self._root / "harness-tasks.json"
        shutil.copyfile(path, path.with_name(f"{path.name}.bak"))
        temporary = path.with_name(f"{path.name}.tmp")
        temporary.write_text(json.dumps(state, indent=2))
        temporary.replace(path)

    def _log(self, text: str) -> None:
        with (self._root / "harness-progress.txt").open("a") as log:
            log.write(f"[{stamp()}] [SESSION-0] {text}\n")

    @contextmanager
    def _locked(self, *, retry: bool) -> Iterator[None]:
        began = time.monotonic()
        self._take(retry=retry)
        self.longest = max(self.longest, time.monotonic() - began)
        try:
            yield
        finally:
            self._lock.free()

    def _take(self, *, retry: bool) -> None:
        while True:
            try:
                self._lock.take()
            except RefusedError:
                if not retry:
                    raise
                time.sleep(random.uniform(0.005, 0.05))
            else:
                return


def stamp(ahead: timedelta = timedelta()) -> str:
    return (datetime.now(timezone.utc) + ahead).strftime("%Y-%m-%dT%H:%M:%SZ")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    options = sys.argv[2:]
    most = next(
        (float(option.partition("=")[2]) for option in options if option.startswith("--most=")), math.inf
    )
    fail_fast, patient = "--fail-fast" in options, "--patient" in options
    agent = Agent(Path(sys.argv[1]), most=most, fail_fast=fail_fast, patient=patient)
    say("ready")
    sys.stdin.readline()
    try:
        agent.work()
    except (OSError, ValueError, KeyError, StopIteration) as error:
        # The list was torn under its hands: that it happens, and how often, is what is measured.
        agent.errors.append(f"{type(error).__name__}: {error}")
    counts = {"finished": agent.finished, "claims": agent.claims, "claims_refused": agent.claims_refused}
    say(json.dumps({**counts, "errors": agent.errors, "waited": agent.longest}))


if __name__ == "__main__":
    main()

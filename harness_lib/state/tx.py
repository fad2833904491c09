"""What one transaction has read, changed and wants to say; the store publishes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from harness_lib.state import journal
from harness_lib.task import Category, LogType, State, Task


class Tx:
    """One state change in the making; only alive inside `with store.transaction() as tx:`.

    `state` is what was read and, once assigned, what will be published. `now` is the moment it began.
    `warnings` are sentences for the caller to pass on, also those found while opening and publishing.
    """

    def __init__(self, state: State, now: datetime, warnings: list[str]) -> None:
        self.now = now
        self.warnings = warnings
        self.lines: list[str] = []
        self.callbacks: list[Callable[[], None]] = []
        self.held: int | None = None
        self.dropped: set[int] = set()
        self._state = state
        self._open = True

    @property
    def state(self) -> State:
        """The list as it is in this transaction."""
        return self._state

    @state.setter
    def state(self, new: State) -> None:
        self._assert_open()
        self._state = new

    def replace(self, task: Task) -> None:
        """Put `task` in the place of the one with its id."""
        self._assert_open()
        tasks = list(self._state.tasks)
        place = next((place for place, each in enumerate(tasks) if each.id == task.id), None)
        assert place is not None, f"BUG: there is no task {task.id} to replace"
        tasks[place] = task
        self._state = replace(self._state, tasks=tuple(tasks))

    def log(
        self,
        kind: LogType,
        message: str,
        *,
        session: int,
        task: str | None = None,
        category: Category | None = None,
    ) -> None:
        """Add a line to the log once the change is published; none is written if it is not."""
        self._assert_open()
        line = journal.line(kind, message, now=self.now, session=session, task=task, category=category)
        self.lines.append(line)

    def on_commit(self, act: Callable[[], None]) -> None:
        """Call `act` after publishing, before the locks are let go; an OSError in it becomes a warning."""
        self._assert_open()
        self.callbacks.append(act)

    def hold_session(self, pid: int | None) -> None:
        """Let the prose's lock directory stand for `pid`, the owner of an exclusive session, from now on."""
        self._assert_open()
        self.held = pid

    def drop_session(self, pid: int | None) -> None:
        """Let that directory no longer stand for `pid`, whose session ends."""
        self._assert_open()
        if pid is not None:
            self.dropped.add(pid)
        if self.held == pid:
            self.held = None

    def close(self) -> None:
        """From now on every change is a bug: it would never be published."""
        self._open = False

    def _assert_open(self) -> None:
        if not self._open:
            raise RuntimeError("BUG: a transaction is used after it has ended")

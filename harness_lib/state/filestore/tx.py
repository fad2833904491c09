"""What one transaction of the file store has read, changed and wants to say; the store publishes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from harness_lib import timestamps
from harness_lib.rules import failures
from harness_lib.rules.failures import Finding
from harness_lib.state import api, journal
from harness_lib.state.filestore.answers import Answers
from harness_lib.task import Category, LogType, Session, SessionConfig, State, Task


class Tx(Answers, api.Tx):
    """One state change in the making; only alive inside `with store.transaction() as tx:`.

    `state` is what was read and, once assigned, what will be published; only `harness_lib.state` touches it.
    `warnings` are sentences for the caller to pass on, also those found while opening and publishing.
    """

    warnings: list[str]

    def __init__(self, state: State, now: datetime, warnings: list[str], *, name: str) -> None:
        super().__init__(state, now, warnings)
        self.lines: list[str] = []
        self.callbacks: list[Callable[[], None]] = []
        self.held: int | None = None
        self.dropped: set[int] = set()
        # Under which name the file as it was read is kept beside the new one.
        self.keeps_old = ""
        self._name = name
        self._read = state
        self._open = True

    @property
    def state(self) -> State:
        """The list as it is in this transaction."""
        return self._state

    @state.setter
    def state(self, new: State) -> None:
        self._assert_open()
        self._state = new

    @property
    def changed(self) -> bool:
        return self._state is not self._read

    def replace(self, task: Task) -> None:
        tasks = list(self._state.tasks)
        place = next((place for place, each in enumerate(tasks) if each.id == task.id), None)
        assert place is not None, f"BUG: there is no task {task.id} to replace"
        tasks[place] = task
        self.state = self._state._replace(tasks=tuple(tasks))

    def add(self, tasks: Iterable[Task]) -> None:
        self.state = self._state._replace(tasks=(*self._state.tasks, *tasks))

    def remove(self, task_id: str) -> None:
        task = self.task(task_id)
        assert task is not None, f"BUG: there is no task {task_id} to remove"
        left = tuple(each for each in self._state.tasks if each is not task)
        self.state = self._state._replace(tasks=left)
        self.forget_attempts(task.attempts)

    def forget_attempts(self, count: int) -> None:
        self.state = self._state._replace(attempts_reset=self._state.attempts_reset + count)

    def validate_dependencies(self) -> tuple[Finding, ...]:
        state, findings = failures.validate_dependencies(self._state, self.now)
        if findings:
            self.state = state
        return findings

    def propose(self, task: Task) -> None:
        self.state = self._state._replace(proposals=(*self._state.proposals, task))

    def drop_proposal(self, task_id: str) -> None:
        left = tuple(each for each in self._state.proposals if each.id != task_id)
        self.state = self._state._replace(proposals=left)

    def configure(self, settings: SessionConfig) -> None:
        self.state = self._state._replace(session_config=settings)

    def start_over(self) -> str:
        self.keeps_old = f"{self._name}.old-{self.now:%Y%m%dT%H%M%SZ}"
        self.state = State(
            created=timestamps.render(self.now), session_config=self._state.session_config, sessions=()
        )
        return self.keeps_old

    def rewrite(self) -> None:
        self.state = self._state._replace()

    def add_session(self, session: Session) -> None:
        self._put_sessions((*self.sessions(), session))

    def replace_session(self, session: Session, number: int | None = None) -> None:
        replaced = session.number if number is None else number
        self._put_sessions(session if each.number == replaced else each for each in self.sessions())

    def remove_session(self, number: int) -> None:
        self._put_sessions(each for each in self.sessions() if each.number != number)
        self.note_session()

    def count_session(self, number: int) -> None:
        self.state = self._state._replace(session_count=max(self._state.session_count, number))

    def note_session(self) -> None:
        self.state = self._state._replace(last_session=timestamps.render(self.now))

    def _put_sessions(self, sessions: Iterable[Session]) -> None:
        self.state = self._state._replace(sessions=tuple(sessions))

    def hold_session(self, pid: int | None) -> None:
        self._assert_open()
        self.held = pid

    def drop_session(self, pid: int | None) -> None:
        self._assert_open()
        if pid is not None:
            self.dropped.add(pid)
        if self.held == pid:
            self.held = None

    def log(
        self,
        kind: LogType,
        message: str,
        *,
        session: int,
        task: str | None = None,
        category: Category | None = None,
    ) -> None:
        self._assert_open()
        line = journal.line(kind, message, now=self.now, session=session, task=task, category=category)
        self.lines.append(line)

    def on_commit(self, act: Callable[[], None]) -> None:
        self._assert_open()
        self.callbacks.append(act)

    def close(self) -> None:
        """From now on every change is a bug: it would never be published."""
        self._open = False

    def _assert_open(self) -> None:
        if not self._open:
            raise RuntimeError("BUG: a transaction is used after it has ended")

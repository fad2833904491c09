"""A store that keeps its list in memory, in rows and indexes as a database would.

What the file store answers by walking through its list, this one answers from what it has counted with each
change, so that the two hold each other to the same rules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from harness_lib import timestamps
from harness_lib.errors import RefusedError
from harness_lib.rules import transitions
from harness_lib.rules.selection import Finding
from harness_lib.state import api, codec, journal, publishing
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.task import Category, LogType, Session, SessionConfig, State, Task
from tests.state.memorystore.rows import Rows, RowsAnswers


class MemoryTx(RowsAnswers, api.Tx):
    """One change in the making, of rows of its own until it is published."""

    warnings: list[str]

    def __init__(self, rows: Rows, clock: Clock) -> None:
        super().__init__(rows, clock.now())
        self.warnings = []
        self.op = str(uuid4())
        self.lines: list[str] = []
        self.callbacks: list[Callable[[], object]] = []
        # What was added under an id that is taken: publishing refuses it.
        self.twice: list[Task] = []
        self._changed = False
        self._open = True

    @property
    def changed(self) -> bool:
        return self._changed

    def replace(self, task: Task) -> None:
        assert task.id in self._written().tasks, f"BUG: there is no task {task.id} to replace"
        self.rows.put(task)

    def add(self, tasks: Iterable[Task]) -> None:
        rows = self._written()
        for task in tasks:
            if task.id in rows.tasks:
                self.twice.append(task)
            else:
                rows.put(task)

    def remove(self, task_id: str) -> None:
        task = self._written().tasks.get(task_id)
        assert task is not None, f"BUG: there is no task {task_id} to remove"
        self.rows.drop(task)
        self.forget_attempts(task.attempts)

    def forget_attempts(self, count: int) -> None:
        self._written().attempts_reset += count

    def validate_dependencies(self) -> tuple[Finding, ...]:
        findings = self.unreachable()
        for task, finding in zip(self.tasks(each.task_id for each in findings), findings, strict=True):
            self.replace(transitions.doom(task, now=self.now, message=finding.message))
        return findings

    def keep_plan(self, plan: str, header: str) -> None:
        if self.plan_header(plan) != header:
            self._written().plans.pop(plan, None)
            self.rows.plans |= {plan: header} if header else {}

    def propose(self, task: Task) -> None:
        self._written().proposals[task.id] = task

    def drop_proposal(self, task_id: str) -> None:
        self._written().proposals.pop(task_id, None)

    def configure(self, settings: SessionConfig) -> None:
        self._written().settings = settings

    def start_over(self) -> str:
        self._written()
        self.rows = Rows(settings=self.rows.settings)
        return ""

    def rewrite(self) -> None:
        self._written()

    def add_session(self, session: Session) -> None:
        self._written().sessions[session.number] = session

    def replace_session(self, session: Session, number: int | None = None) -> None:
        replaced = session.number if number is None else number
        each = [session if was.number == replaced else was for was in self._written().sessions.values()]
        self.rows.sessions = {one.number: one for one in each}

    def remove_session(self, number: int) -> None:
        self._written().sessions.pop(number, None)
        self.note_session()

    def count_session(self, number: int) -> None:
        self._written().session_count = max(self.rows.session_count, number)

    def note_session(self) -> None:
        self._written().last_session = timestamps.render(self.now)

    def log(
        self,
        kind: LogType,
        message: str,
        session: int | None = None,
        task: str | None = None,
        *,
        category: Category | None = None,
    ) -> None:
        self._assert_open()
        number = self.session_count if session is None else session
        line = journal.line(kind, message, now=self.now, session=number, task=task, category=category)
        self.lines.append(line)

    def on_commit(self, act: Callable[[], object]) -> None:
        self._assert_open()
        self.callbacks.append(act)

    def close(self) -> None:
        """From now on every change is a bug: it would never be published."""
        self._open = False

    def _written(self) -> Rows:
        """Return the rows for a change of them."""
        self._assert_open()
        self._changed = True
        return self.rows

    def _assert_open(self) -> None:
        if not self._open:
            raise RuntimeError("BUG: a transaction is used after it has ended")


class MemoryStore(api.Store):
    """The list of one process; its transactions come one after another, whatever thread begins them."""

    shared = None

    def __init__(self, *, clock: Clock = SYSTEM) -> None:
        self.lines: list[str] = []
        self._rows = Rows()
        self._exists = False
        self._hooks = False
        self._clock = clock
        self._lock = threading.Lock()
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def ask(self) -> RowsAnswers:
        return RowsAnswers(self._rows, self._clock.now())

    def ask_to_change(self) -> RowsAnswers:
        return self.ask()

    def ask_now(self, *, waits: bool = True) -> RowsAnswers:  # noqa: ARG002 (it is here)
        return self.ask()

    def examine(self) -> api.Examined:
        return api.Examined((), self.ask())

    def exists(self) -> bool:
        return self._exists

    def begin(self, settings: SessionConfig, message: str) -> tuple[str, ...]:
        if self._exists:
            raise RefusedError("This list exists already.", "Look at it with: harness status")
        self._exists = True
        self._rows = Rows(settings=settings)
        self.lines.append(journal.line("INIT", message, now=self._clock.now(), session=0))
        self.enable_hooks()
        return ()

    def restore(self) -> tuple[str, ...]:
        return ()

    def repair(self) -> tuple[list[str], list[str]]:
        return [], []

    def sweep(self) -> list[str]:
        return []

    def oddities(self) -> Iterator[api.Oddity]:
        return iter(())

    def whole(self) -> State:
        return self._rows.state()

    def stamp(self) -> object:
        return self._rows, len(self.lines), self._hooks

    @property
    def list_file(self) -> Path:
        return Path("memory")

    @property
    def backup_file(self) -> Path:
        return self.list_file

    @property
    def log_file(self) -> Path:
        return self.list_file

    def log_tail(self, lines: int = 0, *, asked: bool = False) -> list[str]:  # noqa: ARG002
        return self.lines[-lines:]

    def log_follow(self) -> Iterator[str]:
        return self._added(len(self.lines))

    def _added(self, shown: int) -> Iterator[str]:
        while True:
            fresh = self.lines[shown:]
            shown += len(fresh)
            yield from fresh
            self._clock.sleep(1)

    def log_searched(self) -> int | None:
        return None

    def hooks_are_on(self) -> bool:
        return self._hooks

    def enable_hooks(self) -> None:
        self._hooks = True

    def disable_hooks(self) -> None:
        self._hooks = False

    @contextmanager
    def transaction(self, kind: api.Kind = "list") -> Iterator[MemoryTx]:  # noqa: ARG002 (one at a time)
        with self._lock:
            tx = MemoryTx(self._rows.copy(), self._clock)
            try:
                yield tx
            finally:
                tx.close()
            self._publish(tx)
            self._warnings.update(dict.fromkeys(tx.warnings))

    def _publish(self, tx: MemoryTx) -> None:
        if tx.changed:
            before, after = self._rows.state(), tx.rows.state()
            publishing.check(after._replace(tasks=(*after.tasks, *tx.twice)), before)
            for task in codec.sealed(after, before).tasks:
                if task is not tx.rows.tasks[task.id]:
                    tx.rows.put(task)
            self._rows = tx.rows
        self.lines += tx.lines
        for act in tx.callbacks:
            with publishing.attempt("what follows it", tx.warnings):
                act()

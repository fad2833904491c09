"""Answer questions about a list in SQL, so that an answer costs what it says and not what the list holds.

Rare questions about the whole list are asked of the rules, as for a list in a file. What is said twice, here
and in `rules/`, is which tasks are ready, in which order, what can never run, and why there is no work.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from typing import Any

import psycopg

from harness_lib.errors import EnvSetupError
from harness_lib.rules import rechecks, selection
from harness_lib.rules.stats import Counts
from harness_lib.state.answers import Answers, ShellAnswers
from harness_lib.state.api import Questions, Tasks
from harness_lib.state.pgstore import lists, rows
from harness_lib.state.pgstore.rows import Rows
from harness_lib.task import Session, State, Status, StopReason, Task

NEXT = "ready and id <> all(%s) order by retry, priority, since, sort_key limit 1"
HELD = "status = 'in_progress' and worker = %s order by place limit 1"


def _outlives(name: str, ask: Callable[..., object]) -> Callable[..., object]:
    """Return `ask`, the question `name`, which is asked of the mirror once the database has gone away."""

    @wraps(ask)
    def asked(self: RowsAnswers, *args: Any, **more: Any) -> object:
        if not self._from_mirror:
            try:
                return ask(self, *args, **more)
            except EnvSetupError as error:
                if self._needs_database or not isinstance(error.__cause__, psycopg.OperationalError):
                    raise
                # A database that does not answer is waited for once.
                self._from_mirror = self._remembered(error)
                self.warnings = [*self.warnings, *self._from_mirror.warnings]
        return getattr(self._from_mirror, name)(*args, **more)

    return asked


def _of_all(name: str) -> Callable[..., object]:
    return lambda self, *args, **more: getattr(self._all(), name)(*args, **more)


class RowsAnswers(ShellAnswers):
    """What `Questions` promises, of a list in a database; `_cyclic`: it may have rings."""

    _cyclic: bool
    _from_mirror: Answers | None = None
    _open_sessions: tuple[Session, ...] | None

    # Rare questions are asked of the whole list.
    ahead = Questions.ahead
    blocked_through = Questions.blocked_through
    commands = Questions.commands
    dependents = Questions.dependents
    interesting = Questions.interesting
    made = Questions.made
    position = Questions.position
    titled = Questions.titled
    why = Questions.why
    worked_on_since = Questions.worked_on_since

    def __init__(self, now: datetime, warnings: Sequence[str] = ()) -> None:
        self.warnings = warnings
        self.now = now

    @property
    def _needs_database(self) -> bool:
        """Whether nothing but the database may answer, as a change depends on it."""
        return False

    def __init_subclass__(cls) -> None:
        """Let questions outlive a database that goes away after it has answered the first one."""
        for name, ask in vars(Questions).items():
            if callable(ask) and not name.startswith("_"):
                is_of_all = vars(RowsAnswers).get(name) is ask
                setattr(cls, name, _outlives(name, _of_all(name) if is_of_all else getattr(cls, name)))

    @abstractmethod
    def _remembered(self, error: EnvSetupError) -> Answers:
        """Return the answers about the mirror. Raises `error` if there is none."""

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """The list as it is at that moment; only `pgstore` uses it."""

    @abstractmethod
    def _all(self) -> Answers:
        """Return the answers about the whole list, read into memory."""

    def _find(self, query: str, *values: object) -> Tasks:
        """Return the tasks that `query` finds."""
        return tuple(task for task, _ in self.rows.tasks(query, *values))

    def _one(self, query: str, *values: object) -> Task | None:
        return next(iter(self._find(query, *values)), None)

    def _is_any(self, condition: str) -> bool:
        query = f"select exists(select from harness.task where list = %s and {condition})"
        return bool(self.rows.value(query))

    def counts(self) -> Counts:
        sums = lists.tally(self.rows)
        del sums["runs"]
        sums["attempts"] += self._shell.attempts_reset
        return Counts(**sums, retryable=sums["failed"] - sums["permanent"])

    def work_remains(self) -> bool:
        counts = self.counts()
        return counts.total > counts.completed + counts.permanent

    def no_work(self) -> StopReason | None:
        counts = self.counts()
        if counts.completed == counts.total:
            return "recheck_failed" if counts.red else "done"
        if self._is_any("ready") or self._is_any("unproven and doubted"):
            return None
        if counts.in_progress or self._is_any("halted and not dead"):
            return "waiting"
        return "recheck_failed" if counts.red else "blocked"

    def task(self, task_id: str) -> Task | None:
        return self._one("id = %s", rows.text_key(task_id))

    def tasks(self, task_ids: Iterable[str]) -> Tasks:
        names = list(task_ids)
        found = {t.id: t for t in self._find("id = any(%s)", [*map(rows.text_key, names)])}
        return tuple(found[name] for name in names if name in found)

    def search(self, *statuses: Status, after: str | None = None, limit: int | None = None) -> Tasks:
        if statuses == ("in_progress",) and after is None:
            return self._find("status = 'in_progress' order by place limit %s", limit)
        return self._all().search(*statuses, after=after, limit=limit)

    def claimable(self) -> Tasks:
        return self._find("ready order by place")

    def next_ready(self, without: Sequence[str] = ()) -> Task | None:
        return self._one(NEXT, [*map(rows.text_key, without)])

    def held_by(self, worker: str) -> Task | None:
        return self._one(HELD, rows.text_key(worker)) if worker else None

    def expired(self) -> Tasks:
        return self._find("status = 'in_progress' and lease <= %s order by place", self.now)

    def halted(self) -> Tasks:
        return self._find("halted order by place")

    def unproven(self) -> Tasks:
        return self._find("unproven order by place")

    def provable(self) -> Tasks:
        return Answers(State(tasks=self.unproven()), self.now).provable()

    def noted(self, task_id: str, limit: int) -> Tasks:
        mine, name = self.task(task_id), rows.text_key(task_id)
        return self._find(
            "noted and (done or id = %s) "
            "order by id = %s desc, id = any(%s) desc, completed_at desc, place limit %s",
            name,
            name,
            [rows.text_key(each) for each in (mine.depends_on if mine else ())],
            limit,
        )

    def highest_number(self) -> int:
        number = "max(substring(id from '^task-([0-9]+)$')::numeric)::text"
        query = f"select coalesce({number}, '0') from harness.task where list = %s"
        return int(self.rows.value(query))

    def rings(self) -> Mapping[str, str]:
        return self._all().rings() if self._cyclic else {}

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        return self._all().cycles() if self._cyclic else ()

    def unreachable(self) -> tuple[selection.Finding, ...]:
        is_any = self._is_any("lost > 0 and not done and not dead and status <> 'in_progress'")
        return self._all().unreachable() if self._cyclic or is_any else ()

    def commands_mark(self) -> str:
        return str(lists.tally(self.rows)["runs"])

    def passed(self, task: Task) -> Task | None:
        proof = rechecks.proof(task, task.started_at_commit)
        return self._one("proof = %s order by place limit 1", proof)

    @property
    def has_had_sessions(self) -> bool:
        return True

    def sessions(self) -> tuple[Session, ...]:
        if self._open_sessions is None:
            found = self.rows.ask("select document from harness.session where list = %s order by place")
            self._open_sessions = lists.sessions_of(document for (document,) in found)
        return self._open_sessions

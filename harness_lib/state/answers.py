"""Answer all questions about a list that is in memory as one `State`, by the rules.

The base of what the file store reads and of what its transactions change.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain, count, islice
from operator import attrgetter
from typing import ClassVar

from harness_lib import timestamps
from harness_lib.rules import attempts, graph, rechecks, recovery, selection, stats
from harness_lib.state import api, journal
from harness_lib.state.api import Questions, TaskCommands, Tasks
from harness_lib.task import (
    Category,
    KeptPlan,
    LogType,
    Session,
    SessionConfig,
    State,
    Status,
    StopReason,
    Task,
)
from harness_lib.text import Strings, folded


class ShellAnswers(Questions):
    """What `_shell`, a list whose tasks and open sessions may be elsewhere, tells of the list as a whole."""

    _shell: State

    def settings(self) -> SessionConfig:
        return self._shell.session_config

    def plan_header(self, plan: str) -> str:
        return next((kept.header for kept in self._shell.plans if kept.plan == plan), "")

    def proposals(self) -> Tasks:
        return self._shell.proposals

    @property
    def session_count(self) -> int:
        return self._shell.session_count

    @property
    def last_session(self) -> str | None:
        return self._shell.last_session

    def sessions_spent(self) -> StopReason | None:
        most = self._shell.session_config.max_sessions
        return "max_sessions" if 0 < most <= self._shell.session_count else None


class Answers(ShellAnswers):
    """What `Questions` promises, of one `state` at the moment `now`."""

    _indexes: ClassVar[_Indexes | None] = None
    # The commands of each task of the last list.
    _commands: ClassVar[tuple[State, list[tuple[TaskCommands, ...]]]] = (State(), [])

    def __init__(self, state: State, now: datetime, warnings: Sequence[str] = ()) -> None:
        self.warnings = warnings
        self.now = now
        # Only `harness_lib.state` uses it.
        self.state = state

    @property
    def _shell(self) -> State:  # type: ignore[override]  # nobody sets it
        return self.state

    def counts(self) -> stats.Counts:
        return stats.count(self.state)

    def ahead(self) -> stats.Ahead:
        return stats.of(self.state)

    def work_remains(self) -> bool:
        return stats.work_remains(self.state)

    def no_work(self) -> StopReason | None:
        return stats.no_work(self.state)

    def task(self, task_id: str) -> Task | None:
        place = self._place(task_id)
        return None if place is None else self.state.tasks[place]

    def tasks(self, task_ids: Iterable[str]) -> Tasks:
        tasks = (self.task(task_id) for task_id in task_ids)
        return tuple(task for task in tasks if task)

    def position(self, task_id: str) -> int:
        return self._index().places[task_id]

    def why(self, task_id: str) -> selection.Why:
        return selection.why(self.state, task_id, self.now)

    def dependents(self, task_id: str) -> Strings:
        needing = (task.id for task in self.state.tasks if task_id in task.depends_on)
        return tuple(name for name in needing if name != task_id)

    def blocked_through(self, task_id: str) -> Strings:
        return selection.blocked_through(self.state, task_id)

    def search(self, *statuses: Status, after: str | None = None, limit: int | None = None) -> Tasks:
        first = 0 if after is None else self._index().places.get(after, len(self.state.tasks)) + 1
        rest = islice(self.state.tasks, first, None)
        return tuple(islice((task for task in rest if not statuses or task.status in statuses), limit))

    def interesting(self, limit: int | None = None) -> Tasks:
        return tuple(selection.interesting(self.state)[:limit])

    def claimable(self) -> Tasks:
        return tuple(selection.eligible(self.state))

    def next_ready(self, without: Sequence[str] = ()) -> Task | None:
        return selection.pick(self.state, without)

    def held_by(self, worker: str) -> Task | None:
        return next((task for task in self.state.tasks if recovery.is_mine(task, worker)), None)

    def expired(self) -> Tasks:
        return tuple(task for task in self.in_progress() if recovery.expired(task, self.now))

    def halted(self) -> Tasks:
        return tuple(
            task for task in self.state.tasks if task.halt is not None and task.status != "completed"
        )

    def unproven(self) -> Tasks:
        return tuple(task for task in self.state.tasks if task.unproven)

    def provable(self) -> Tasks:
        return tuple(selection.unproven(self.state))

    def noted(self, task_id: str, limit: int) -> Tasks:
        return tuple(attempts.concerning(self.state.tasks, task_id)[:limit])

    def made(self, commit: str) -> Strings:
        return tuple(self._index().commits.get(commit, ()))

    def worked_on_since(self, moment: datetime) -> Tasks:
        return tuple(task for task in self.state.tasks if attempts.since(task, moment))

    def titled(self, title: str) -> Strings:
        return tuple(self._index().titles.get(folded(title), ()))

    def highest_number(self) -> int:
        matches = (re.fullmatch(r"task-([0-9]+)", task.id) for task in self.state.tasks)
        return max((int(match[1]) for match in matches if match), default=0)

    def rings(self) -> Mapping[str, str]:
        return graph.cycle_members(self.state.tasks)

    def cycles(self) -> tuple[Strings, ...]:
        return graph.cycles(self.state.tasks)

    def unreachable(self) -> tuple[selection.Finding, ...]:
        return selection.validate_dependencies(self.state, self.now)[1]

    def commands(self) -> tuple[TaskCommands, ...]:
        # A worker asks before each attempt, and only a few tasks have changed since.
        made = self.state.each_made(TaskCommands.of, *Answers._commands)
        Answers._commands = self.state, made
        return tuple(chain.from_iterable(made))

    def commands_mark(self) -> str:
        return str(sum(map(TaskCommands.number, self.state.tasks)))

    def passed(self, task: Task) -> Task | None:
        proof = rechecks.proof(task, task.started_at_commit)
        same = (each for each in self.state.tasks if rechecks.proof(each, rechecks.passed_on(each)) == proof)
        return next(same, None) if proof is not None else None

    @property
    def has_had_sessions(self) -> bool:
        return not self.state.is_legacy

    def sessions(self) -> tuple[Session, ...]:
        return self.state.sessions or ()

    def _place(self, task_id: str) -> int | None:
        """Return the place of the task, None if there is none: mostly where it was before the last change."""
        known, tasks = Answers._indexes, self.state.tasks
        place = None if not known else known.places.get(task_id)
        if place is not None and place < len(tasks) and tasks[place].id == task_id:
            return place
        return self._index().places.get(task_id)

    def _index(self) -> _Indexes:
        # One for the process: between two changes all questions are about the same list.
        known = Answers._indexes
        if known is None or known.state is not self.state:
            known = Answers._indexes = _Indexes(self.state)
        return known


def of_no_list(now: datetime) -> Answers:
    """Return the answers about a list that is still to be made."""
    return Answers(State(), now)


class _Indexes:
    """The places of tasks in `state`, by id, title and commit; each index is made when it is first needed."""

    def __init__(self, state: State) -> None:
        self.state = state

    @cached_property
    def places(self) -> dict[str, int]:
        return dict(zip(map(attrgetter("id"), self.state.tasks), count(), strict=False))

    @cached_property
    def titles(self) -> dict[str, list[str]]:
        ids_by_title: dict[str, list[str]] = {}
        for task in self.state.tasks:
            ids_by_title.setdefault(folded(task.title), []).append(task.id)
        return ids_by_title

    @cached_property
    def commits(self) -> dict[str, list[str]]:
        ids_by_commit: dict[str, list[str]] = {}
        for task in self.state.tasks:
            moving = task.intent.commit if task.intent and task.intent.action == "commit" else None
            for commit in dict.fromkeys((task.completed_commit, moving)):
                if commit is not None:
                    ids_by_commit.setdefault(commit, []).append(task.id)
        return ids_by_commit


class Change(ShellAnswers):
    """A change of the list as a whole, and what it keeps for its end: lines of the log, what follows it."""

    lines: list[str]
    callbacks: list[Callable[[], object]]
    _open: bool
    # It changes tasks and sessions only.
    _is_narrow: bool

    @abstractmethod
    def _put_shell(self, shell: State) -> None:
        """Let the list be as `shell` says."""

    def forget_attempts(self, count: int) -> None:
        self._put_shell(self._shell._replace(attempts_reset=self._shell.attempts_reset + count))

    def keep_plan(self, plan: str, header: str) -> None:
        self._assert_wide()
        if self.plan_header(plan) != header:
            others = tuple(kept for kept in self._shell.plans if kept.plan != plan)
            kept = (KeptPlan(plan, header),) if header else ()
            self._put_shell(self._shell._replace(plans=(*others, *kept)))

    def propose(self, task: Task) -> None:
        self._assert_wide()
        self._put_shell(self._shell._replace(proposals=(*self._shell.proposals, task)))

    def drop_proposal(self, task_id: str) -> None:
        self._assert_wide()
        left = tuple(each for each in self._shell.proposals if each.id != task_id)
        self._put_shell(self._shell._replace(proposals=left))

    def configure(self, settings: SessionConfig) -> None:
        self._assert_wide()
        self._put_shell(self._shell._replace(session_config=settings))

    def count_session(self, number: int) -> None:
        self._put_shell(self._shell._replace(session_count=max(self._shell.session_count, number)))

    def note_session(self) -> None:
        self._put_shell(self._shell._replace(last_session=timestamps.render(self.now)))

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

    def _assert_open(self) -> None:
        if not self._open:
            raise RuntimeError("BUG: a transaction is used after it has ended")

    def _assert_wide(self) -> None:
        self._assert_open()
        assert not self._is_narrow, "BUG: a narrow change may change tasks and sessions only"


class Tx(Change, Answers, api.Tx):
    """One state change in the making; only alive inside `with store.transaction() as tx:`.

    `state` is what was read or, once changed, what will be published.
    `warnings` are sentences for the user, also about opening and publishing.
    """

    warnings: list[str]

    def __init__(
        self, state: State, now: datetime, warnings: list[str], *, name: str, kind: api.Kind = "list"
    ) -> None:
        super().__init__(state, now, warnings)
        self._is_narrow = kind == "tasks"
        self.lines: list[str] = []
        self.callbacks: list[Callable[[], object]] = []
        # The name under which the file as it was read is kept beside the new one.
        self.keeps_old = ""
        self._name = name
        self._read = state
        self._open = True

    @property
    def changed(self) -> bool:
        return self.state is not self._read

    def _put_shell(self, shell: State) -> None:
        self._assert_open()
        self.state = shell

    def replace(self, task: Task) -> None:
        tasks, place = list(self.state.tasks), self._place(task.id)
        assert place is not None, f"BUG: there is no task {task.id} to replace"
        if task.depends_on != tasks[place].depends_on:
            self._assert_wide()
        tasks[place] = task
        self._put_shell(self.state._replace(tasks=tuple(tasks)))

    def add(self, tasks: Iterable[Task]) -> None:
        self._assert_wide()
        self._put_shell(self.state._replace(tasks=(*self.state.tasks, *tasks)))

    def remove(self, task_id: str) -> None:
        self._assert_wide()
        task = self.task(task_id)
        assert task is not None, f"BUG: there is no task {task_id} to remove"
        left = tuple(each for each in self.state.tasks if each is not task)
        self._put_shell(self.state._replace(tasks=left))
        self.forget_attempts(task.attempts)

    def validate_dependencies(self) -> tuple[selection.Finding, ...]:
        state, findings = selection.validate_dependencies(self.state, self.now)
        if findings:
            self._put_shell(state)
        return findings

    def start_over(self) -> str:
        self._assert_wide()
        self.keeps_old = f"{self._name}.old-{self.now:%Y%m%dT%H%M%SZ}"
        created, settings = timestamps.render(self.now), self.state.session_config
        self._put_shell(State(created=created, session_config=settings, sessions=()))
        return self.keeps_old

    def rewrite(self) -> None:
        self._put_shell(self.state._replace())

    def add_session(self, session: Session) -> None:
        self._put_sessions((*self.sessions(), session))

    def replace_session(self, session: Session, number: int | None = None) -> None:
        replaced = session.number if number is None else number
        self._put_sessions(session if each.number == replaced else each for each in self.sessions())

    def remove_session(self, number: int) -> None:
        self._put_sessions(each for each in self.sessions() if each.number != number)
        self.note_session()

    def _put_sessions(self, sessions: Iterable[Session]) -> None:
        self._put_shell(self.state._replace(sessions=tuple(sessions)))

    def close(self) -> None:
        """Refuse changes from now on: they would never be published."""
        self._open = False

"""The answers to all questions about a list that is in memory as one `State`, by the rules.

Base of what the file store reads and of what its transactions change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import ClassVar

from harness_lib.rules import ahead, attempts, failures, graph, leases, notes, selection, stats, stopping
from harness_lib.rules.ahead import Ahead
from harness_lib.rules.failures import Finding
from harness_lib.rules.selection import Why
from harness_lib.rules.stats import Counts
from harness_lib.state.api import Questions, TaskCommands
from harness_lib.task import Session, SessionConfig, State, Status, StopReason, Task
from harness_lib.text import folded


class Answers(Questions):
    """What `Questions` promises, of one `state` at the moment `now`."""

    _indexes: ClassVar[_Indexes | None] = None

    def __init__(self, state: State, now: datetime, warnings: Sequence[str] = ()) -> None:
        self.warnings = warnings
        self._now = now
        self._state = state

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def concurrent(self) -> bool:
        return self._state.concurrent

    def settings(self) -> SessionConfig:
        return self._state.session_config

    def counts(self) -> Counts:
        return stats.count(self._state)

    def ahead(self) -> Ahead:
        return ahead.of(self._state)

    def work_remains(self) -> bool:
        return stopping.work_remains(self._state)

    def holds_agents(self) -> bool:
        return stopping.holds_agents(self._state)

    def no_work(self) -> StopReason | None:
        return stopping.no_work(self._state)

    def awaits_person(self) -> bool:
        return stopping.awaits_person(self._state)

    def task(self, task_id: str) -> Task | None:
        place = self._index().places.get(task_id)
        return None if place is None else self._state.tasks[place]

    def tasks(self, task_ids: Iterable[str]) -> tuple[Task, ...]:
        tasks = (self.task(task_id) for task_id in task_ids)
        return tuple(task for task in tasks if task is not None)

    def position(self, task_id: str) -> int:
        return self._index().places[task_id]

    def why(self, task_id: str) -> Why:
        return selection.why(self._state, task_id, self.now)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        needing = (task.id for task in self._state.tasks if task_id in task.depends_on)
        return tuple(name for name in needing if name != task_id)

    def blocked_through(self, task_id: str) -> tuple[str, ...]:
        return failures.blocked_through(self._state, task_id)

    def search(
        self, *statuses: Status, after: str | None = None, limit: int | None = None
    ) -> tuple[Task, ...]:
        first = 0 if after is None else self._index().places.get(after, len(self._state.tasks)) + 1
        rest = islice(self._state.tasks, first, None)
        return tuple(islice((task for task in rest if not statuses or task.status in statuses), limit))

    def interesting(self, limit: int | None = None) -> tuple[Task, ...]:
        return tuple(selection.interesting(self._state)[:limit])

    def claimable(self) -> tuple[Task, ...]:
        return tuple(selection.eligible(self._state))

    def next_ready(self) -> Task | None:
        return selection.pick(self._state)

    def held_by(self, worker: str) -> Task | None:
        return next((task for task in self._state.tasks if leases.is_mine(task, worker)), None)

    def in_progress(self) -> tuple[Task, ...]:
        return self.search("in_progress")

    def expired(self) -> tuple[Task, ...]:
        return tuple(task for task in self.in_progress() if leases.expired(task, self.now))

    def halted(self) -> tuple[Task, ...]:
        return tuple(
            task for task in self._state.tasks if task.halt is not None and task.status != "completed"
        )

    def unproven(self) -> tuple[Task, ...]:
        return tuple(task for task in self._state.tasks if task.unproven)

    def provable(self) -> tuple[Task, ...]:
        return tuple(selection.unproven(self._state))

    def noted(self, task_id: str, limit: int) -> tuple[Task, ...]:
        return tuple(notes.concerning(self._state.tasks, task_id)[:limit])

    def made(self, commit: str) -> tuple[str, ...]:
        return tuple(self._index().commits.get(commit, ()))

    def worked_on_since(self, moment: datetime) -> tuple[Task, ...]:
        return tuple(task for task in self._state.tasks if attempts.since(task, moment))

    def titled(self, title: str) -> tuple[str, ...]:
        return tuple(self._index().titles.get(folded(title), ()))

    def highest_number(self) -> int:
        matches = (re.fullmatch(r"task-(\d+)", task.id) for task in self._state.tasks)
        return max((int(match[1]) for match in matches if match), default=0)

    def rings(self) -> Mapping[str, str]:
        return graph.cycle_members(self._state.tasks)

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        return graph.cycles(self._state.tasks)

    def doomed(self) -> tuple[Finding, ...]:
        return failures.validate_dependencies(self._state, self.now)[1]

    def commands(self) -> tuple[TaskCommands, ...]:
        return tuple(row for task in self._state.tasks for row in TaskCommands.of(task))

    def proposals(self) -> tuple[Task, ...]:
        return self._state.proposals

    @property
    def session_count(self) -> int:
        return self._state.session_count

    @property
    def last_session(self) -> str | None:
        return self._state.last_session

    @property
    def has_had_sessions(self) -> bool:
        return self._state.sessions is not None

    def sessions(self) -> tuple[Session, ...]:
        return self._state.sessions or ()

    def session(self, worker: str) -> Session | None:
        return next((each for each in self.sessions() if leases.works_for(worker, each.worker)), None)

    def session_spent(self, session: Session) -> StopReason | None:
        return stopping.session_spent(self._state, session)

    def sessions_spent(self) -> StopReason | None:
        return stopping.sessions_spent(self._state)

    def _index(self) -> _Indexes:
        # Of the whole process: who asks again and again has the same list, until somebody changes it.
        if Answers._indexes is None or Answers._indexes.state is not self._state:
            Answers._indexes = _Indexes(self._state)
        return Answers._indexes


class _Indexes:
    """Where something stands in `state`, each made when it is first asked for."""

    def __init__(self, state: State) -> None:
        self.state = state

    @cached_property
    def places(self) -> dict[str, int]:
        return {task.id: place for place, task in enumerate(self.state.tasks)}

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

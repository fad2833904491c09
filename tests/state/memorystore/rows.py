"""A list as rows with counts and indexes that are kept with every change, and the answers found in them.

What is said twice, here and in `rules/`, is which tasks are ready, in which order, and why there are none;
what is neither found nor counted, such as why a task waits, is asked of the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from harness_lib import timestamps
from harness_lib.rules import arrows, attempts, graph, rechecks, selection, stats
from harness_lib.rules.selection import Finding, Why
from harness_lib.rules.stats import Ahead, Counts
from harness_lib.state.api import Questions, TaskCommands
from harness_lib.task import STATUSES, KeptPlan, Session, SessionConfig, State, Status, StopReason, Task
from harness_lib.text import folded


@dataclass
class Rows:
    """The tables of one list; `waits` counts the dependencies of each task that are not completed."""

    settings: SessionConfig = field(default_factory=SessionConfig)
    tasks: dict[str, Task] = field(default_factory=dict)
    sessions: dict[int, Session] = field(default_factory=dict)
    proposals: dict[str, Task] = field(default_factory=dict)
    plans: dict[str, str] = field(default_factory=dict)
    session_count: int = 0
    last_session: str | None = None
    attempts_reset: int = 0
    by_status: dict[Status, dict[str, None]] = field(default_factory=lambda: {each: {} for each in STATUSES})
    needed_by: dict[str, dict[str, None]] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Rows:
        """Return rows that may change while these stay."""
        return replace(
            self,
            tasks=dict(self.tasks),
            sessions=dict(self.sessions),
            proposals=dict(self.proposals),
            plans=dict(self.plans),
            by_status={status: dict(ids) for status, ids in self.by_status.items()},
            needed_by={task_id: dict(ids) for task_id, ids in self.needed_by.items()},
            waits=dict(self.waits),
        )

    def put(self, task: Task) -> None:
        """Put `task` in the place of the one with its id, or at the end."""
        before = self.tasks.get(task.id)
        if before is not None:
            self._unlink(before)
        self.tasks[task.id] = task
        self.by_status[task.status][task.id] = None
        for name in task.depends_on:
            self.needed_by.setdefault(name, {})[task.id] = None
        self.waits[task.id] = sum(not self._is_done(name) for name in set(task.depends_on))
        if (before is not None and before.is_done) != task.is_done:
            self._tell(task.id, -1 if task.is_done else 1)

    def drop(self, task: Task) -> None:
        """Forget `task`."""
        self._unlink(task)
        del self.tasks[task.id], self.waits[task.id]
        if task.is_done:
            self._tell(task.id, 1)

    def state(self) -> State:
        """Return all of it as one value, for the rules that are asked about a whole list."""
        return State(
            session_config=self.settings,
            tasks=tuple(self.tasks.values()),
            session_count=self.session_count,
            last_session=self.last_session,
            sessions=tuple(self.sessions.values()),
            proposals=tuple(self.proposals.values()),
            plans=tuple(KeptPlan(plan, header) for plan, header in self.plans.items()),
            attempts_reset=self.attempts_reset,
            proofs=True,
        )

    def _unlink(self, task: Task) -> None:
        del self.by_status[task.status][task.id]
        for name in task.depends_on:
            self.needed_by[name].pop(task.id, None)

    def _is_done(self, task_id: str) -> bool:
        return task_id in self.tasks and self.tasks[task_id].is_done

    def _tell(self, task_id: str, more: int) -> None:
        """Let those that need `task_id` wait for one more, or less."""
        for name in self.needed_by.get(task_id, ()):
            if name != task_id:
                self.waits[name] += more


class RowsAnswers(Questions):
    """What `Questions` promises, of `rows` at the moment `now`."""

    def __init__(self, rows: Rows, now: datetime) -> None:
        self.rows = rows
        self.warnings: Sequence[str] = ()
        self.now = now

    def settings(self) -> SessionConfig:
        return self.rows.settings

    def counts(self) -> Counts:
        permanent = {task.id for task in self.search("failed") if selection.is_permanent(task)}
        doubted = [task for task in self.unproven() if task.status == "completed"]
        open_ones = [*self.search("pending"), *doubted]
        blocked = {name for task_id in permanent for name in self.rows.needed_by.get(task_id, ())}
        every = self.rows.tasks.values()
        return Counts(
            total=len(every),
            completed=len(self.rows.by_status["completed"]) - len(doubted),
            failed=len(self.rows.by_status["failed"]),
            pending=len(open_ones),
            in_progress=len(self.rows.by_status["in_progress"]),
            blocked=sum(task.id in blocked for task in open_ones),
            attempts=self.rows.attempts_reset + sum(task.attempts for task in every),
            checkpoints=sum(len(task.checkpoints) for task in every),
            retryable=len(self.rows.by_status["failed"]) - len(permanent),
            permanent=len(permanent),
            red=len(rechecks.red(self.search("completed"))),
        )

    def ahead(self) -> Ahead:
        return stats.of(self.rows.state())

    def work_remains(self) -> bool:
        counts = self.counts()
        return counts.total > counts.completed + counts.permanent

    def holds_agents(self) -> bool:
        checks = any(session.final_check for session in self.sessions())
        return checks or self.work_remains() or self.counts().red > 0

    def no_work(self) -> StopReason | None:
        counts = self.counts()
        if counts.completed == counts.total:
            return "recheck_failed" if counts.red else "done"
        if self.claimable() or any(task.status == "completed" for task in self.unproven()):
            return None
        halted = any(not selection.is_permanent(task) for task in self.halted())
        if counts.in_progress or halted:
            return "waiting"
        return "recheck_failed" if counts.red else "blocked"

    def awaits_user(self) -> bool:
        return self.no_work() == "waiting" and not self.rows.by_status["in_progress"]

    def task(self, task_id: str) -> Task | None:
        return self.rows.tasks.get(task_id)

    def tasks(self, task_ids: Iterable[str]) -> tuple[Task, ...]:
        return tuple(self.rows.tasks[task_id] for task_id in task_ids if task_id in self.rows.tasks)

    def position(self, task_id: str) -> int:
        return list(self.rows.tasks).index(task_id)

    def why(self, task_id: str) -> Why:
        return selection.why(self.rows.state(), task_id, self.now)

    def dependents(self, task_id: str) -> tuple[str, ...]:
        return self._listed(name for name in self.rows.needed_by.get(task_id, ()) if name != task_id)

    def blocked_through(self, task_id: str) -> tuple[str, ...]:
        return selection.blocked_through(self.rows.state(), task_id)

    def search(
        self, *statuses: Status, after: str | None = None, limit: int | None = None
    ) -> tuple[Task, ...]:
        ids = {name for status in statuses or STATUSES for name in self.rows.by_status[status]}
        tasks = iter(self.rows.tasks.values())
        if after is not None:
            for task in tasks:
                if task.id == after:
                    break
        return tuple(islice((task for task in tasks if task.id in ids), limit))

    def interesting(self, limit: int | None = None) -> tuple[Task, ...]:
        return tuple(selection.interesting(self.rows.state())[:limit])

    def claimable(self) -> tuple[Task, ...]:
        return tuple(task for task in self.search("pending", "failed") if self._is_ready(task))

    def next_ready(self, without: Sequence[str] = ()) -> Task | None:
        ready = (task for task in self.claimable() if task.id not in without)
        return min(ready, key=_queue_key, default=None)

    def held_by(self, worker: str) -> Task | None:
        return next((task for task in self.in_progress() if worker and task.claimed_by == worker), None)

    def expired(self) -> tuple[Task, ...]:
        return self._those(
            lambda task: (
                task.lease_expires_at is not None and timestamps.parse(task.lease_expires_at) <= self.now
            ),
            "in_progress",
        )

    def halted(self) -> tuple[Task, ...]:
        return self._those(lambda task: task.halt is not None, "pending", "in_progress", "failed")

    def unproven(self) -> tuple[Task, ...]:
        return self._those(lambda task: task.unproven)

    def provable(self) -> tuple[Task, ...]:
        return self._those(lambda task: task.unproven and arrows.may("confirm", task))

    def noted(self, task_id: str, limit: int) -> tuple[Task, ...]:
        return tuple(attempts.concerning(self.rows.tasks.values(), task_id)[:limit])

    def made(self, commit: str) -> tuple[str, ...]:
        return self._listed(task.id for task in self.rows.tasks.values() if commit in _commits(task))

    def worked_on_since(self, moment: datetime) -> tuple[Task, ...]:
        return self._those(lambda task: bool(attempts.since(task, moment)))

    def titled(self, title: str) -> tuple[str, ...]:
        return tuple(task.id for task in self._those(lambda task: folded(task.title) == folded(title)))

    def highest_number(self) -> int:
        heads = (name.partition("task-") for name in self.rows.tasks)
        numbers = [tail for head, _, tail in heads if not head and tail.isascii()]
        return max((int(tail) for tail in numbers if tail.isdecimal()), default=0)

    def rings(self) -> Mapping[str, str]:
        return graph.cycle_members(self.rows.tasks.values())

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        return graph.cycles(self.rows.tasks.values())

    def unreachable(self) -> tuple[Finding, ...]:
        return selection.validate_dependencies(self.rows.state(), self.now)[1]

    def commands(self) -> tuple[TaskCommands, ...]:
        return tuple(row for task in self.rows.tasks.values() for row in TaskCommands.of(task))

    def commands_mark(self) -> str:
        return str(sum(map(TaskCommands.number, self.rows.tasks.values())))

    def passed(self, task: Task) -> Task | None:
        at = task.started_at_commit
        same = [each for each in self.rows.tasks.values() if rechecks.key(each) == rechecks.key(task)]
        return next((each for each in same if at is not None and rechecks.passed_on(each) == at), None)

    def plan_header(self, plan: str) -> str:
        return self.rows.plans.get(plan, "")

    def proposals(self) -> tuple[Task, ...]:
        return tuple(self.rows.proposals.values())

    @property
    def session_count(self) -> int:
        return self.rows.session_count

    @property
    def last_session(self) -> str | None:
        return self.rows.last_session

    @property
    def has_had_sessions(self) -> bool:
        return True

    def sessions(self) -> tuple[Session, ...]:
        return tuple(self.rows.sessions.values())

    def session_spent(self, session: Session) -> StopReason | None:
        most = self.rows.settings.max_tasks_per_session
        return "max_tasks_per_session" if most and session.finished_attempts >= most else None

    def sessions_spent(self) -> StopReason | None:
        most = self.rows.settings.max_sessions
        return "max_sessions" if most and self.rows.session_count >= most else None

    def _is_ready(self, task: Task) -> bool:
        is_open = task.halt is None and not selection.is_permanent(task)
        return is_open and self.rows.waits[task.id] == 0

    def _those(self, predicate: Callable[[Task], bool], *statuses: Status) -> tuple[Task, ...]:
        return tuple(filter(predicate, self.search(*statuses)))

    def _listed(self, names: Iterable[str]) -> tuple[str, ...]:
        chosen = set(names)
        return tuple(name for name in self.rows.tasks if name in chosen)


def _queue_key(task: Task) -> tuple[bool, str, str, graph.IdKey]:
    """Return what the index of a queue would be sorted by; the stamps of this store compare as texts do."""
    failed = task.status == "failed"
    return failed, task.priority, (task.failed_at or "") if failed else "", graph.id_key(task.id)


def _commits(task: Task) -> Iterator[str | None]:
    yield task.completed_commit
    if task.intent is not None and task.intent.action == "commit":
        yield task.intent.commit

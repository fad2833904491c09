"""The interface of a store of tasks: the only way to the list for all layers above.

Callers ask questions and do not get the list: who needs one task asks for one task. Nothing here says how a
list is kept, so another kind of store is another class with these methods, and no change above it.
`rules/` decides how a task changes; the store only finds it and replaces it.

    questions = ctx.ask()                     # a snapshot; no lock, nothing is written
    with ctx.transaction() as tx:             # the same questions, and nobody else changes the list
        tx.replace(transitions.renew(tx.task(...), ...))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from harness_lib.checks import check_of
from harness_lib.rules import rechecks, recovery, stats
from harness_lib.rules.selection import Finding, Why
from harness_lib.state.reading import Problem
from harness_lib.task import Category, LogType, Session, SessionConfig, State, Status, StopReason, Task
from harness_lib.text import Strings

# What a change may change: all of the list; or only sessions, the log and tasks that are there, but for what
# these depend on.
Kind = Literal["list", "tasks"]
Tasks = tuple[Task, ...]


class TaskCommands(NamedTuple):
    """The commands of the task called `task` for a shell: its check, the directory of that, its cleanup."""

    task: str
    check: str | None
    cwd: str | None
    cleanup: str | None

    @classmethod
    def of(cls, task: Task) -> tuple[TaskCommands, ...]:
        """Return one for each command of its check; one also if it has no check."""
        first, *more = check_of(task).commands() or ((None, None),)
        return (cls(task.id, *first, task.on_failure.cleanup), *(cls(task.id, *each, None) for each in more))

    @classmethod
    def number(cls, task: Task) -> int:
        """Return a hash of all of them, without the id of the task; 0 if there is none."""
        texts = [row[1:] for row in cls.of(task)]
        return rechecks.number(texts) if any(map(any, texts)) else 0


class Oddity(NamedTuple):
    """Something unusual, and its cure: `bad` keeps harness from working, `warn` may do so or surprise."""

    level: Literal["ok", "warn", "bad"]
    what: str
    cure: str | None = None


class Examined(NamedTuple):
    """The problems of a list, the least nested first, and the answers about it if it can be read.

    `is_lost`: it is missing, not JSON or without tasks, which a repair can mend. `is_only_unproven`: the only
    problem is that an external edit marks tasks as completed.
    """

    problems: tuple[Problem, ...]
    questions: Questions | None = None
    is_lost: bool = False
    is_only_unproven: bool = False


class Questions(Protocol):
    """The questions about the list as it is at one moment, `now`: leases that ended before it have expired.

    Tasks and sessions come in the order of the list unless another order is named. A missing one is None or
    left out; no question raises.
    `warnings` are sentences about problems of the list when it was read.
    """

    now: datetime
    warnings: Sequence[str]

    # The list as a whole.

    @property
    def concurrent(self) -> bool:
        """Whether many workers share this list; otherwise one session at a time holds it."""
        return self.settings().concurrency_mode == "concurrent"

    def settings(self) -> SessionConfig:
        """Return the mode and the limits of the list."""

    def counts(self) -> stats.Counts:
        """Return how many tasks have which status."""

    def ahead(self) -> stats.Ahead:
        """Return how many tasks are left, and the length of their longest chain of dependencies."""

    def work_remains(self) -> bool:
        """Return whether a task is pending, in progress or to be tried again."""

    def holds_agents(self) -> bool:
        """Return whether hooks hold agents: while work remains, a task is red, or a final check is left."""
        checks = any(session.final_check for session in self.sessions())
        return checks or self.work_remains() or self.counts().red > 0

    def no_work(self) -> StopReason | None:
        """Return why no task can be claimed; None if one can, or if one must be proven first."""

    def awaits_user(self) -> bool:
        """Return whether all tasks that are left are blocked on a human: waiting will not help."""
        return self.no_work() == "waiting" and self.counts().in_progress == 0

    # One task.

    def task(self, task_id: str) -> Task | None:
        """Return the task called `task_id`."""

    def tasks(self, task_ids: Iterable[str]) -> Tasks:
        """Return the tasks called `task_ids` that exist, in that order."""

    def position(self, task_id: str) -> int:
        """Return how many tasks precede `task_id`, which exists; errors name a field by this index."""

    def why(self, task_id: str) -> Why:
        """Return whether `task_id`, which exists, may be claimed, and the reasons."""

    def dependents(self, task_id: str) -> Strings:
        """Return the ids of the other tasks that name `task_id` as a dependency."""

    def blocked_through(self, task_id: str) -> Strings:
        """Return the ids of the tasks that failed only because they depend on `task_id`, directly or not."""

    # Some tasks.

    def search(self, *statuses: Status, after: str | None = None, limit: int | None = None) -> Tasks:
        """Return at most `limit` tasks with one of `statuses` (default: any) that follow the task `after`.

        Nothing follows a task that no longer exists.
        """

    def interesting(self, limit: int | None = None) -> Tasks:
        """Return the tasks in the order of interest for a user: in progress, halted, failed, next, done."""

    def claimable(self) -> Tasks:
        """Return the tasks that may be claimed."""

    def next_ready(self, without: Sequence[str] = ()) -> Task | None:
        """Return the task to claim next, apart from those called `without`."""

    def held_by(self, worker: str) -> Task | None:
        """Return the task that `worker` has in progress under this very name."""

    def in_progress(self) -> Tasks:
        """Return the tasks in progress."""
        return self.search("in_progress")

    def expired(self) -> Tasks:
        """Return the tasks in progress whose lease had ended by `now`."""

    def halted(self) -> Tasks:
        """Return the tasks that are blocked on a human."""

    def unproven(self) -> Tasks:
        """Return the tasks that only an external edit says are completed, claimed ones too."""

    def provable(self) -> Tasks:
        """Return the tasks of `unproven` whose check can run now."""

    def noted(self, task_id: str, limit: int) -> Tasks:
        """Return at most `limit` tasks with notes for `task_id`: itself, its dependencies, the newest."""

    def made(self, commit: str) -> Strings:
        """Return the ids of the tasks whose finished work is, or is about to be, in `commit`."""

    def worked_on_since(self, moment: datetime) -> Tasks:
        """Return the tasks with an attempt that has ended since `moment`."""

    def titled(self, title: str) -> Strings:
        """Return the ids of the tasks with this title; blanks and case do not count."""

    def highest_number(self) -> int:
        """Return the highest N of all ids of the form `task-N`; 0 if there is none."""

    def rings(self) -> Mapping[str, str]:
        """Return a cycle through each task that depends on itself, as text: `a -> b -> a`."""

    def cycles(self) -> tuple[Strings, ...]:
        """Return each cycle of dependencies once, as its ids, with the first one again at the end."""

    def unreachable(self) -> tuple[Finding, ...]:
        """Return the tasks that can never run and are not marked as failed yet, with the reason."""

    def commands(self) -> tuple[TaskCommands, ...]:
        """Return the commands of each task, also of tasks without commands."""

    def commands_mark(self) -> str:
        """Return what differs if tasks with other commands were added, removed or changed."""

    def passed(self, task: Task) -> Task | None:
        """Return the first completed task whose check, that of `task`, passed on the commit it began on."""

    def plan_header(self, plan: str) -> str:
        """Return what the imported `plan` says for all of its tasks; "" if nothing is kept of it."""

    def proposals(self) -> Tasks:
        """Return the tasks that agents propose; nothing of them runs before a user accepts them."""

    # Sessions.

    @property
    def session_count(self) -> int:
        """The number of the last session that was counted."""

    @property
    def last_session(self) -> str | None:
        """When a session last began or ended, as a timestamp."""

    @property
    def has_had_sessions(self) -> bool:
        """Whether this list ever had a session of harness; not if only the legacy protocol was followed."""

    def sessions(self) -> tuple[Session, ...]:
        """Return the open sessions."""

    def session(self, worker: str) -> Session | None:
        """Return the open session of `worker`, or of the run that `worker` belongs to."""
        return next((each for each in self.sessions() if recovery.works_for(worker, each.worker)), None)

    def session_spent(self, session: Session) -> StopReason | None:
        """Return `max_tasks_per_session` if `session` has finished as many attempts as it may."""
        limit = self.settings().max_tasks_per_session
        return "max_tasks_per_session" if 0 < limit <= session.finished_attempts else None

    def sessions_spent(self) -> StopReason | None:
        """Return `max_sessions` if no further session may start; asked before that one is counted."""


class Tx(Questions, Protocol):
    """One change of the list: all questions, answered with the changes so far, and the ways to change it.

    Only valid inside `with store.transaction() as tx:`. Leaving that publishes all of the change; after an
    error nothing is published.
    """

    warnings: list[str]

    @property
    def changed(self) -> bool:
        """Whether the list differs from what was read."""

    def task_if_free(self, task_id: str) -> Task | None:
        """Return the task called `task_id`; None also while another machine changes it."""
        return self.task(task_id)

    def replace(self, task: Task) -> None:
        """Replace the task that has the id of `task`."""

    def add(self, tasks: Iterable[Task]) -> None:
        """Append `tasks` to the list."""

    def remove(self, task_id: str) -> None:
        """Remove a task; its attempts stay counted."""

    def forget_attempts(self, count: int) -> None:
        """Add `count` attempts of a task that starts again to those of the list."""

    def validate_dependencies(self) -> tuple[Finding, ...]:
        """Mark the tasks that can never run as failed; return them, with the reason."""

    def keep_plan(self, plan: str, header: str) -> None:
        """Keep `header` as what the imported `plan` says for all of its tasks; "" keeps nothing."""

    def propose(self, task: Task) -> None:
        """Append `task` to the proposals."""

    def drop_proposal(self, task_id: str) -> None:
        """Remove the proposal called `task_id`."""

    def configure(self, settings: SessionConfig) -> None:
        """Set the mode and the limits of the list."""

    def start_over(self) -> str:
        """Empty the list, keep its settings, reset its counts; return where the old list is kept."""

    def rewrite(self) -> None:
        """Publish the list and the files beside it although nothing has changed."""

    def add_session(self, session: Session) -> None:
        """Open `session`, which is not counted yet."""

    def replace_session(self, session: Session, number: int | None = None) -> None:
        """Replace the session `number` (default: that of `session`) by `session`."""

    def remove_session(self, number: int) -> None:
        """Close the session `number`, and call `note_session`."""

    def count_session(self, number: int) -> None:
        """Record that sessions up to `number` have been opened."""

    def note_session(self) -> None:
        """Record that a session has begun or ended now."""

    def log(
        self,
        kind: LogType,
        message: str,
        session: int | None = None,
        task: str | None = None,
        *,
        category: Category | None = None,
    ) -> None:
        """Add a line to the log once the change is published; without a `session` it names the last one."""

    def on_commit(self, act: Callable[[], object]) -> None:
        """Call `act` after publishing, still under the lock; an OSError becomes a warning."""


class Shared(Protocol):
    """What a list of many machines has besides: its name, and the turns of the machines that merge."""

    @property
    def name(self) -> str:
        """The name of the list."""

    def take_turn(self, branch: str, holder: str, seconds: float) -> int | None:
        """Let `holder` merge into `branch` for `seconds` from now; return the fence of its turn.

        None: another one has the turn. A holder that has it already keeps it under the same fence.
        """

    def leave_turn(self, branch: str, holder: str) -> None:
        """End the turn of `holder`, if it is still its own."""

    def turns(self) -> tuple[tuple[str, str], ...]:
        """Return the branches that somebody merges into now, each with the holder of its turn."""


class Store(Protocol):
    """Access to one list."""

    @property
    def shared(self) -> Shared | None:
        """What a list of many machines has besides; None for a list of one machine."""

    @property
    def warnings(self) -> Strings:
        """The warnings of the transactions so far, each sentence once."""

    def ask(self) -> Questions:
        """Return the questions about the list as it is now; takes no lock and writes nothing.

        Raises ContractError (it is invalid), StateUnreadableError (no good copy is left), EnvSetupError.
        """

    def ask_to_change(self) -> Questions:
        """Return what `ask` does, and log it if no good copy is left, as every change would."""

    def ask_now(self, *, waits: bool = True) -> Questions:
        """Return what `ask` does, from the list alone: files that follow it may lack the caller's own claim.

        Raises AwayError (it cannot be reached, for a while if the caller `waits`).
        """

    def examine(self) -> Examined:
        """Return the problems of the list; takes no lock and writes nothing."""

    def exists(self) -> bool:
        """Return whether there is a list, valid or not."""

    def begin(self, settings: SessionConfig, message: str) -> Strings:
        """Make an empty list and its log, which begins with `message`; enable the hooks; return the names.

        Raises RefusedError if there is a list already.
        """

    def restore(self) -> Strings:
        """Replace the list by its newest good copy, at a user's request; return warnings."""

    def repair(self) -> tuple[list[str], list[str]]:
        """Repair what needs no decision of a user; return what was done, and warnings.

        Raises as `transaction` does.
        """

    def sweep(self) -> list[str]:
        """Remove the old leftovers of dead writers; return what was removed."""

    def oddities(self) -> Iterator[Oddity]:
        """Yield what is unusual about the files and locks of the list, for `harness doctor`."""

    def transaction(self, kind: Kind = "list") -> AbstractContextManager[Tx]:
        """Lock the list for one change; one of the kind "tasks" may go on beside others of its kind.

        Raises HeldError (another process holds it for too long), ContractError (of the list as read, or as
        changed), EnvSetupError, StateUnreadableError: then nothing was changed.
        """

    def whole(self) -> State:
        """Return the list as one value, to be checked, moved or exported; raises as `ask` does."""

    def stamp(self) -> object:
        """Return a value that differs after each change of the list, its log or the enable flag."""

    # Beside the list.

    @property
    def list_file(self) -> Path:
        """The file of the list, to be shown to a user; only the store opens it."""

    @property
    def backup_file(self) -> Path:
        """The file of the list as it was before the last change, to be shown to a user."""

    @property
    def log_file(self) -> Path:
        """The file of the log, to be shown to a user."""

    def log_tail(self, lines: int = ..., *, asked: bool = False) -> list[str]:
        """Return the last `lines` lines of what is searched of the log; `asked`: the list was, just now."""

    def log_follow(self) -> Iterator[str]:
        """Yield the lines that are added to the log from the call on, for ever."""

    def log_searched(self) -> int | None:
        """Return how many bytes of the log are searched; None if that is the whole log."""

    def hooks_are_on(self) -> bool:
        """Return whether hooks hold agents while work remains."""

    def enable_hooks(self) -> None:
        """Let hooks hold agents from now on."""

    def disable_hooks(self) -> None:
        """Let hooks hold no agent from now on."""

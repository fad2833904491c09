"""What a store of tasks must be able to do, whatever keeps them: the only way to the list from above.

It is asked questions, not for the list: what needs one task asks for one task. Nothing says how a list is
kept, so another kind of store is another class with these methods and no change above it.

    questions = ctx.store.ask()                     # one moment, no lock, nothing is written
    with ctx.store.transaction() as tx:             # the same questions, and nobody else changes the list
        tx.replace(transitions.renew(tx.task(...), ...))

`rules/` decides what becomes of a task, here it is only found and put in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from harness_lib.checks import check_of
from harness_lib.rules.failures import Finding
from harness_lib.rules.selection import Why
from harness_lib.rules.stats import Ahead, Counts
from harness_lib.state.reading import Problem
from harness_lib.task import Category, LogType, Session, SessionConfig, Status, StopReason, Task


class TaskCommands(NamedTuple):
    """What a shell would be given for the task called `task`: its check, where that runs, its cleanup."""

    task: str
    check: str | None
    cwd: str | None
    cleanup: str | None

    @classmethod
    def of(cls, task: Task) -> tuple[TaskCommands, ...]:
        """Return one for each command of its check; one also where that has none."""
        first, *more = check_of(task).commands() or ((None, None),)
        return (cls(task.id, *first, task.on_failure.cleanup), *(cls(task.id, *each, None) for each in more))


class Oddity(NamedTuple):
    """Something that is unusual: `bad` keeps harness from working, `warn` may do so; and what helps."""

    level: Literal["ok", "warn", "bad"]
    what: str
    cure: str | None = None


class Examined(NamedTuple):
    """What is wrong with a list, the nearest to its top first; what can be asked of it, if it can be read.

    `is_lost`: it is missing, no JSON or without tasks, the cases that a repair can mend. `is_only_unproven`:
    the only problem is that an external edit says of tasks that they are completed.
    """

    problems: tuple[Problem, ...]
    questions: Questions | None = None
    is_lost: bool = False
    is_only_unproven: bool = False


class Questions(Protocol):
    """What can be asked of the list as it is at one moment, `now`.

    Tasks and sessions come in the order of the list unless another one is named. What is not there is None or
    empty; nothing here raises.
    `warnings` are sentences about what was wrong with the list when it was read, for whoever asks.
    """

    warnings: Sequence[str]

    @property
    def now(self) -> datetime:
        """The moment of which the answers are; what has expired had done so by then."""

    # The list as a whole.

    @property
    def concurrent(self) -> bool:
        """Whether many workers share this list; else one session at a time holds it."""

    def settings(self) -> SessionConfig:
        """Return the mode and the limits of the list."""

    def counts(self) -> Counts:
        """Return how many tasks are how far."""

    def ahead(self) -> Ahead:
        """Return how many tasks may still be done, and how many of them only one after another."""

    def work_remains(self) -> bool:
        """Return whether a task is pending, in progress or to be tried again."""

    def holds_agents(self) -> bool:
        """Return whether hooks hold agents: while work remains, or a completed task is red."""

    def no_work(self) -> StopReason | None:
        """Return why no task can be claimed; None if one can, or if one must be proven first."""

    def awaits_person(self) -> bool:
        """Return whether only a person can free what is left: waiting for other workers would be in vain."""

    # One task.

    def task(self, task_id: str) -> Task | None:
        """Return the task called `task_id`."""

    def tasks(self, task_ids: Iterable[str]) -> tuple[Task, ...]:
        """Return those of the tasks called `task_ids` that there are, in the order of `task_ids`."""

    def position(self, task_id: str) -> int:
        """Return how many tasks stand before `task_id`, which is there; errors name a field by it."""

    def why(self, task_id: str) -> Why:
        """Return whether `task_id`, which is there, may be claimed, and what speaks for or against it."""

    def dependents(self, task_id: str) -> tuple[str, ...]:
        """Return the ids of the other tasks that name `task_id` as a dependency."""

    def blocked_through(self, task_id: str) -> tuple[str, ...]:
        """Return the ids of the failed tasks that wait, directly or not, for `task_id` and only failed so."""

    # Some tasks.

    def search(
        self, *statuses: Status, after: str | None = None, limit: int | None = None
    ) -> tuple[Task, ...]:
        """Return the tasks with one of `statuses` (none: any), at most `limit`, from the one behind `after`.

        Raises nothing: behind a task that is not there any more is nothing.
        """

    def interesting(self, limit: int | None = None) -> tuple[Task, ...]:
        """Return the tasks that a person would look for first: at work, halted, failed, next, done."""

    def claimable(self) -> tuple[Task, ...]:
        """Return the tasks that may be claimed."""

    def next_ready(self) -> Task | None:
        """Return the task that is to be claimed next."""

    def held_by(self, worker: str) -> Task | None:
        """Return the task that `worker` has in progress under this very name."""

    def in_progress(self) -> tuple[Task, ...]:
        """Return the tasks in progress."""

    def expired(self) -> tuple[Task, ...]:
        """Return the tasks in progress whose lease had ended by `now`."""

    def halted(self) -> tuple[Task, ...]:
        """Return the tasks that a person must act on before anybody takes them."""

    def unproven(self) -> tuple[Task, ...]:
        """Return the tasks that only an external edit says are completed.

        Those that harness has claimed are among them; `provable` are those whose check can run now.
        """

    def provable(self) -> tuple[Task, ...]:
        """Return those of `unproven` whose check may say at once whether they are completed."""

    def noted(self, task_id: str, limit: int) -> tuple[Task, ...]:
        """Return at most `limit` tasks whose notes concern `task_id`: its own, what it needs, the newest."""

    def made(self, commit: str) -> tuple[str, ...]:
        """Return the ids of the tasks that say `commit` holds, or is about to hold, their finished work."""

    def worked_on_since(self, moment: datetime) -> tuple[Task, ...]:
        """Return the tasks of which an attempt has ended since `moment`."""

    def titled(self, title: str) -> tuple[str, ...]:
        """Return the ids of the tasks that have this title, blanks and capitals aside."""

    def highest_number(self) -> int:
        """Return the highest N of all ids of the form `task-N`; 0 if there is none."""

    def rings(self) -> Mapping[str, str]:
        """Return, for each task that waits for itself, the text of a cycle through it: `a -> b -> a`."""

    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Return each ring of dependencies once, as the ids in it, the first one again at its end."""

    def unreachable(self) -> tuple[Finding, ...]:
        """Return which tasks can never run and are not marked so yet, and why."""

    def commands(self) -> tuple[TaskCommands, ...]:
        """Return what each task would run, one row per task, also of those that run nothing."""

    def proposals(self) -> tuple[Task, ...]:
        """Return the tasks that agents would add; nothing of them runs before a person accepts them."""

    # Sessions.

    @property
    def session_count(self) -> int:
        """The number of the last session that was counted."""

    @property
    def last_session(self) -> str | None:
        """The stamp of when a session began or ended last."""

    @property
    def has_had_sessions(self) -> bool:
        """Whether this list ever had a session of harness; not if only the legacy protocol was followed."""

    def sessions(self) -> tuple[Session, ...]:
        """Return the open sessions."""

    def session(self, worker: str) -> Session | None:
        """Return the open session that `worker`, or the worker whose slot this is, works in."""

    def session_spent(self, session: Session) -> StopReason | None:
        """Return `max_tasks_per_session` if `session` has finished as many attempts as it may."""

    def sessions_spent(self) -> StopReason | None:
        """Return `max_sessions` if no further session may start."""


class Tx(Questions, Protocol):
    """One change of the list in the making: all questions, answered as it will be, and the ways to change it.

    Only alive inside `with store.transaction() as tx:`; leaving it publishes all of it or, if that raises or
    an error passes, nothing.
    """

    warnings: list[str]

    @property
    def changed(self) -> bool:
        """Whether anything of the list is different from what was read."""

    def replace(self, task: Task) -> None:
        """Put `task` in the place of the one with its id."""

    def add(self, tasks: Iterable[Task]) -> None:
        """Put `tasks` at the end of the list."""

    def remove(self, task_id: str) -> None:
        """Take a task off the list; its attempts stay counted."""

    def forget_attempts(self, count: int) -> None:
        """Count `count` attempts of a task that begins anew among those of the list."""

    def validate_dependencies(self) -> tuple[Finding, ...]:
        """Mark the tasks that can never run as failed; return which, and why."""

    def propose(self, task: Task) -> None:
        """Put `task` at the end of the proposals."""

    def drop_proposal(self, task_id: str) -> None:
        """Forget the proposal called `task_id`."""

    def configure(self, settings: SessionConfig) -> None:
        """Set the mode and the limits of the list."""

    def start_over(self) -> str:
        """Make it an empty list with the same settings, counted anew; return where the old one is kept."""

    def rewrite(self) -> None:
        """Publish the list though nothing of it has changed, with all that is kept beside it."""

    def add_session(self, session: Session) -> None:
        """Open `session`, which is not counted yet."""

    def replace_session(self, session: Session, number: int | None = None) -> None:
        """Put `session` in the place of the one called `number`, its own if None."""

    def remove_session(self, number: int) -> None:
        """Close the session called `number`, and do what `note_session` does."""

    def count_session(self, number: int) -> None:
        """Note that sessions up to `number` have been opened."""

    def note_session(self) -> None:
        """Note that a session has begun or ended now."""

    def hold_session(self, pid: int | None) -> None:
        """Lock agents of the legacy protocol out for `pid`, the owner of an exclusive session."""

    def drop_session(self, pid: int | None) -> None:
        """Do that no longer for `pid`, whose session ends."""

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

    def on_commit(self, act: Callable[[], None]) -> None:
        """Call `act` after publishing and before anybody else may change the list; warn of an OSError."""


class Store(Protocol):
    """The one way to a list."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the transactions so far had to say beside their result, each sentence once."""

    def ask(self) -> Questions:
        """Return what can be asked of the list as it is now; takes no lock and writes nothing.

        Raises ContractError (it cannot be a list), StateUnreadableError (nothing is left of it),
        EnvSetupError.
        """

    def ask_to_change(self) -> Questions:
        """Return what `ask` does; that nothing is left is logged, as every change would log it."""

    def examine(self) -> Examined:
        """Return what is wrong with the list as it lies there; takes no lock and writes nothing."""

    def exists(self) -> bool:
        """Return whether there is a list, whatever is wrong with it."""

    def begin(self, settings: SessionConfig, message: str) -> tuple[str, ...]:
        """Make an empty list, whose log begins with `message`, switch the hooks on; return what was made.

        Raises RefusedError if there is a list already.
        """

    def restore(self) -> tuple[str, ...]:
        """Put the newest good list in the place of the one there, as a person wants; return warnings."""

    def repair(self) -> tuple[list[str], list[str]]:
        """Mend what can be mended without asking anybody; return what was done, and warnings.

        Raises as `transaction` does.
        """

    def sweep(self) -> list[str]:
        """Take away what writers that have died left behind, once it is old; return what was taken away."""

    def oddities(self) -> Iterator[Oddity]:
        """Yield what is unusual about how the list is kept and locked, for `harness doctor`."""

    def transaction(self) -> AbstractContextManager[Tx]:
        """Hold the list for one change.

        Raises HeldError (somebody else has it for longer than one waits), ContractError (of the list as read,
        or as changed), EnvSetupError, StateUnreadableError: then nothing was changed.
        """

    def stamp(self) -> object:
        """Return what is another value after each change of the list, its log or the switch of the hooks."""

    # Beside the list.

    @property
    def list_file(self) -> Path:
        """The file of the list, to be named to a person; only the store opens it."""

    @property
    def backup_file(self) -> Path:
        """The file of the list as it was before the last change, to be named to a person."""

    @property
    def log_file(self) -> Path:
        """The file of the log, to be named to a person."""

    def log_tail(self, lines: int = ...) -> list[str]:
        """Return the last `lines` lines of the log, of as much of it as is looked through."""

    def log_follow(self) -> Iterator[str]:
        """Yield the lines that are added to the log from the call on, for ever."""

    def log_searched(self) -> int | None:
        """Return how many bytes of the log are looked through; None if that is all of it."""

    def hooks_are_on(self) -> bool:
        """Return whether hooks hold agents while work remains."""

    def switch_hooks(self, *, on: bool) -> None:
        """Let hooks hold agents from now on, or not."""

"""The task list as a whole, its sessions and its settings: each field once, as in `records/task.py`."""

from collections.abc import Callable, Sequence
from itertools import compress, count
from operator import is_not
from typing import Annotated, Literal, NamedTuple, TypeVar, get_args

from harness_lib.records.attempt import NO_EXTRA, Extra
from harness_lib.records.fields import (
    FLAG,
    LONG,
    MOMENT,
    STRING,
    VERSION_NUMBER,
    About,
    choice,
    integer,
    listed,
    record,
)
from harness_lib.records.task import HaltKind, Task

Mode = Literal["exclusive", "concurrent"]
MODES: tuple[Mode, ...] = get_args(Mode)

VERSION = 2

_Made = TypeVar("_Made")


class Session(NamedTuple):
    """An open session and the process that owns it."""

    number: Annotated[int, About(integer(), "N of SESSION-N in the log.", required=True)]
    worker: Annotated[str, About(STRING, "Who claims in it.", required=True)]
    host: Annotated[str, About(STRING, "The machine it runs on.", required=True)]
    boot_id: Annotated[
        str | None, About(STRING, "Which start of that machine, and which process namespace.", always=True)
    ] = None
    pid: Annotated[int | None, About(integer(1), "The owner process.", null=True, always=True)] = None
    pid_started: Annotated[
        str | None, About(STRING, "When that process began, against recycled pids.", always=True)
    ] = None
    agent_session_id: Annotated[
        str | None, About(STRING, "What the host calls the session.", always=True)
    ] = None
    started_at: Annotated[str | None, About(MOMENT, "When.", always=True)] = None
    finished_attempts: Annotated[int, About(integer(), "Attempts that ended in it.", always=True)] = 0
    halt: Annotated[
        str | None, About(STRING, "Why the session stands still until the user has acted.", always=True)
    ] = None
    halt_kind: Annotated[
        HaltKind | None, About(choice(HaltKind), "What must be seen to before the session goes on.")
    ] = None
    halt_task: Annotated[str | None, About(STRING, "The task that it stands still for, if it is one.")] = None
    final_check: Annotated[
        bool,
        About(
            FLAG,
            "No task is left for it; the checks of all completed ones must still run on a clean checkout.",
        ),
    ] = False
    extra: Extra = NO_EXTRA


class SessionConfig(NamedTuple):
    """Limits of a session and of all sessions; 0, null or absent is no limit."""

    concurrency_mode: Annotated[
        Mode,
        About(
            choice(Mode),
            "`concurrent`: several workers, each in a worktree of its own.",
            null=False,
            always=True,
        ),
    ] = "exclusive"
    max_tasks_per_session: Annotated[
        int,
        About(integer(), "Finished attempts after which a session ends.", null=True, always=True, absent=0),
    ] = 20
    max_sessions: Annotated[
        int, About(integer(), "Sessions that may run, the last one too.", null=True, always=True, absent=0)
    ] = 50
    final_check: Annotated[
        bool,
        About(
            FLAG,
            "In a chat the checks of all completed tasks run once more when the list is finished; hooks hold "
            "the agent until then.",
        ),
    ] = True
    extra: Extra = NO_EXTRA


class KeptPlan(NamedTuple):
    """An imported plan: what it says for all of its tasks."""

    plan: Annotated[str, About(STRING, "Its file, as in the source of its tasks.", required=True)]
    header: Annotated[str, About(LONG, "What the brief of each of its tasks begins with.", required=True)]
    extra: Extra = NO_EXTRA


class State(NamedTuple):
    """The whole of harness-tasks.json."""

    version: Annotated[int, About(VERSION_NUMBER, "2, also when absent.", null=False, always=True)] = VERSION
    created: Annotated[str | None, About(MOMENT, "When the list was made.", always=True)] = None
    session_config: Annotated[
        SessionConfig,
        About(
            record(SessionConfig),
            "Limits of a session and of all sessions; 0, null or absent is no limit.",
            always=True,
        ),
    ] = SessionConfig()
    tasks: Annotated[
        tuple[Task, ...],
        About(listed(record(Task, "task")), "The tasks, in the order they were added.", required=True),
    ] = ()
    session_count: Annotated[int, About(integer(), "Sessions started so far.", always=True)] = 0
    last_session: Annotated[str | None, About(MOMENT, "When the last session ended.", always=True)] = None
    sessions: Annotated[
        tuple[Session, ...] | None,
        About(
            listed(record(Session, "session")),
            "The open sessions; absent in a list that no harness command has touched.",
        ),
    ] = None
    proposals: Annotated[
        tuple[Task, ...],
        About(
            listed(record(Task, "task")),
            "Tasks that unattended agents would add; nothing of them runs before the user accepts them.",
        ),
    ] = ()
    plans: Annotated[
        tuple[KeptPlan, ...],
        About(listed(record(KeptPlan)), "The imported plans, each with what it says for all of its tasks."),
    ] = ()
    attempts_reset: Annotated[
        int, About(integer(), "Failed attempts of tasks that were removed or given a new start.")
    ] = 0
    proofs: Annotated[
        bool,
        About(FLAG, "Every task that harness has completed bears its proof; one without it is unproven."),
    ] = False
    extra: Extra = NO_EXTRA

    @property
    def is_legacy(self) -> bool:
        """Whether only agents of the legacy protocol have worked on it: it never had a session of harness."""
        return self.sessions is None

    def find(self, task_id: str) -> Task | None:
        """Return the task called `task_id`, or None."""
        return next((task for task in self.tasks if task.id == task_id), None)

    def changed_since(self, old: "State") -> list[int]:
        """Return the places of the tasks that `old` has not, or others in their place."""
        if len(self.tasks) == len(old.tasks):
            return list(compress(count(), map(is_not, self.tasks, old.tasks)))
        known = set(map(id, old.tasks))
        return [place for place, task in enumerate(self.tasks) if id(task) not in known]

    def each_made(self, make: Callable[[Task], _Made], old: "State", known: Sequence[_Made]) -> list[_Made]:
        """Return what `make` makes of each task; `known` is what it has made of each of `old`."""
        # Most lists are large, and differ in a task or two.
        if len(known) == len(old.tasks) == len(self.tasks):
            made = list(known)
            for place in self.changed_since(old):
                made[place] = make(self.tasks[place])
            return made
        by_id = dict(zip(map(id, old.tasks), known, strict=False))
        return [by_id[id(task)] if id(task) in by_id else make(task) for task in self.tasks]

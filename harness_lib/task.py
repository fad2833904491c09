"""The nouns: what a task list is made of, in the field names of the protocol.

All values are frozen; a change is `_replace`, so an object that is still the same object has not changed.
`extra` holds keys this version does not know; they survive every write.
Every verb and many hooks start with this file: as dataclasses these would take ten times as long to make, and
as annotations that are texts twice as long.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md for the fields beyond it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

Status = Literal["pending", "in_progress", "completed", "failed"]
Outcome = Literal["completed", "failed", "pending"]
Priority = Literal["P0", "P1", "P2"]
Mode = Literal["exclusive", "concurrent"]
# Why there is nothing to go on with, from the rule that finds it to the reply that says so.
StopReason = Literal["done", "blocked", "waiting", "max_tasks_per_session", "max_sessions"]
# Why an unattended run has ended before that.
RunStop = Literal["interrupted", "limit", "stuck", "broken"]
Category = Literal[
    "ENV_SETUP", "CONFIG", "TASK_EXEC", "TEST_FAIL", "TIMEOUT", "DEPENDENCY", "SESSION_TIMEOUT"
]
LogType = Literal[
    "INIT", "Starting", "Completed", "ERROR", "CHECKPOINT", "ROLLBACK", "RECOVERY", "STATS", "LOCK", "WARN"
]

STATUSES: tuple[Status, ...] = get_args(Status)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
MODES: tuple[Mode, ...] = get_args(Mode)
CATEGORIES: tuple[Category, ...] = get_args(Category)

VERSION = 2
DEFAULT_TIMEOUT_SECONDS = 300
DEFAULT_MAX_ATTEMPTS = 3

Extra = Mapping[str, object]
NO_EXTRA: Extra = MappingProxyType({})


class Validation(NamedTuple):
    """The objective check: `command` exits 0 exactly when the task is done."""

    command: str | None = None
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    cwd: str | None = None
    protect: tuple[str, ...] = ()
    red_first: bool = False
    extra: Extra = NO_EXTRA


class OnFailure(NamedTuple):
    """What to run after a failed attempt has been rolled back."""

    cleanup: str | None = None
    extra: Extra = NO_EXTRA


class Checkpoint(NamedTuple):
    """Progress inside an attempt; `tree` is the content's git tree at that moment."""

    step: int
    total: int
    description: str = ""
    timestamp: str | None = None
    tree: str | None = None
    extra: Extra = NO_EXTRA


class Gate(NamedTuple):
    """What an attempt may not weaken, taken when it was claimed.

    `command` is a SHA-256, `protected` a git tree of the protected files, `before` the commit that holds what
    was untracked, `branch` the full name of the ref that HEAD stood for (None when detached).
    `target` is the full name of the branch that finished work is merged into; None: it is committed where the
    attempt was made. `judges` is a git tree of the files that judge the attempt beside the command.
    """

    command: str | None = None
    cwd: str | None = None
    protected: str | None = None
    judges: str | None = None
    before: str | None = None
    branch: str | None = None
    target: str | None = None
    extra: Extra = NO_EXTRA


class Intent(NamedTuple):
    """What is under way in git, written before it begins: a crash can be finished.

    `merge`: the checked work `commit` is being brought onto the gate's target; `commit`: `ref` (None: HEAD)
    moves from `head` to `commit`; `rollback`: the work goes to `rescue` and the work tree back to `base`.
    """

    action: Literal["commit", "rollback", "merge"]
    at: str
    base: str | None = None
    head: str | None = None
    commit: str | None = None
    ref: str | None = None
    rescue: str | None = None
    category: Category | None = None
    message: str | None = None
    outcome: Literal["failed", "pending"] = "failed"
    extra: Extra = NO_EXTRA


class Handback(NamedTuple):
    """Why work that had been done goes to an agent again, at no cost to the task.

    `rescue` keeps that work, made on the commit `base`; `rounds` counts how often it could not be merged.
    """

    reason: str
    rounds: int = 0
    rescue: str | None = None
    base: str | None = None
    extra: Extra = NO_EXTRA


class Interruption(NamedTuple):
    """What stood there when an attempt was interrupted last, and how many `times` in a row it was just that.

    `tree` is the git tree of the work tree as it was left to whoever went on, `checkpoints` their number.
    """

    tree: str | None = None
    checkpoints: int = 0
    times: int = 1
    extra: Extra = NO_EXTRA


class Attempt(NamedTuple):
    """What is kept of an attempt: `fence` tells which claim it was, `outcome` is None while it goes on.

    `cost_usd` and `tokens` as far as agents of a run tell; `pending`: it was handed back.
    """

    number: int
    fence: int = 0
    outcome: Outcome | None = None
    started_at: str | None = None
    ended_at: str | None = None
    cost_usd: float = 0.0
    tokens: int = 0
    extra: Extra = NO_EXTRA


class Task(NamedTuple):
    """One piece of work, its check, and how it has fared.

    `completed_commit` is the commit that holds the finished work: a worker in another worktree must have it
    before it may claim a task that depends on this one.
    `proof` is written with a completed task, and `unproven` is true where somebody else's write says that it
    is completed.
    `notes` are what its worker wants later ones to know.
    `touched` are the files of its judge that its last attempt has changed, `attempted_by` the last workers
    that have claimed it.
    `interruptions` counts how often the attempt under way was cut off, which costs it nothing.
    """

    id: str
    title: str = ""
    status: Status = "pending"
    priority: Priority = "P1"
    depends_on: tuple[str, ...] = ()
    attempts: int = 0
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    started_at_commit: str | None = None
    validation: Validation = Validation()
    on_failure: OnFailure = OnFailure()
    error_log: tuple[str, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    completed_at: str | None = None
    completed_commit: str | None = None
    description: str | None = None
    claimed_by: str | None = None
    claimed_at: str | None = None
    lease_expires_at: str | None = None
    worktree: str | None = None
    fence: int = 0
    gate: Gate | None = None
    intent: Intent | None = None
    failed_at: str | None = None
    halt: str | None = None
    notes: tuple[str, ...] = ()
    handback: Handback | None = None
    touched: tuple[str, ...] = ()
    attempted_by: tuple[str, ...] = ()
    interruptions: int = 0
    interrupted: Interruption | None = None
    attempt_log: tuple[Attempt, ...] = ()
    proof: str | None = None
    unproven: bool = False
    extra: Extra = NO_EXTRA

    @property
    def is_done(self) -> bool:
        """Whether the task is completed, and nobody else than harness says so."""
        return self.status == "completed" and not self.unproven


class Session(NamedTuple):
    """An open session and the process that owns it."""

    number: int
    worker: str
    host: str
    boot_id: str | None = None
    pid: int | None = None
    pid_started: str | None = None
    agent_session_id: str | None = None
    started_at: str | None = None
    finished_attempts: int = 0
    halt: str | None = None
    extra: Extra = NO_EXTRA


class SessionConfig(NamedTuple):
    """Limits of a session and of all sessions; 0 is no limit."""

    concurrency_mode: Mode = "exclusive"
    max_tasks_per_session: int = 20
    max_sessions: int = 50
    extra: Extra = NO_EXTRA


class State(NamedTuple):
    """The whole of harness-tasks.json; `sessions` is None in a list that the prose made.

    `proposals` are tasks that unattended agents would add; nothing of them runs before a person accepts them.
    `attempts_reset` counts the attempts of tasks that were removed or given a new start.
    `proofs`: what is completed was given its proof, so that one without it is somebody else's.
    """

    version: int = VERSION
    created: str | None = None
    session_config: SessionConfig = SessionConfig()
    tasks: tuple[Task, ...] = ()
    session_count: int = 0
    last_session: str | None = None
    sessions: tuple[Session, ...] | None = None
    proposals: tuple[Task, ...] = ()
    attempts_reset: int = 0
    proofs: bool = False
    extra: Extra = NO_EXTRA

    @property
    def concurrent(self) -> bool:
        """Whether many workers share this list."""
        return self.session_config.concurrency_mode == "concurrent"

    def find(self, task_id: str) -> Task | None:
        """Return the task called `task_id`, or None."""
        return next((task for task in self.tasks if task.id == task_id), None)

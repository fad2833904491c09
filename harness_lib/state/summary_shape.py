"""The type of the status cache: its keys, and what each holds.

With it mypy finds a misspelt key. At run time the cache is a plain dict, and hooks do not load this file.
Source: docs/design.md, "The summary".
"""

from __future__ import annotations

from typing import TypedDict

from harness_lib.task import Mode, StopReason


class TaskName(TypedDict):
    """A task in a message."""

    id: str
    title: str


class WorkingTask(TaskName):
    """A task in progress: its worker, its progress, its work tree."""

    attempts: int
    checkpoints: int
    claimed_by: str | None
    claimed_at: str | None
    lease_expires_at: str | None
    worktree: str | None
    halt: str | None


class Failure(TypedDict):
    """The last failure, and its task."""

    id: str
    text: str | None


class Counts(TypedDict):
    """How many tasks are in which status, and how many attempts and checkpoints all of them have had."""

    total: int
    completed: int
    failed: int
    pending: int
    in_progress: int
    blocked: int
    retryable: int
    unreachable: int
    attempts: int
    checkpoints: int


class OpenSession(TypedDict):
    """A session as in the list, which may have more keys."""

    number: int
    worker: str
    host: str
    boot_id: str | None
    pid: int | None
    pid_started: str | None
    agent_session_id: str | None
    started_at: str | None
    finished_attempts: int
    halt: str | None
    final_check: bool


class Summary(TypedDict):
    """The status cache; lists of tasks are cut after 100, texts after 300 characters.

    `stamp` is [size in bytes, inode, mtime in ns, ctime in ns] of the list that it was made from. The clock
    that has dated what it says is `ahead` of this machine's by so many seconds.
    """

    format: int
    stamp: list[int]
    ahead: float
    version: int
    mode: Mode
    counts: Counts
    work_remains: bool
    stop: StopReason | None
    next: TaskName | None
    in_progress: list[WorkingTask]
    unreachable: list[str]
    unproven: list[TaskName]
    rechecks: str
    red: list[TaskName]
    sessions: list[OpenSession] | None
    session_count: int
    sessions_spent: bool
    max_tasks_per_session: int
    last_failure: Failure | None

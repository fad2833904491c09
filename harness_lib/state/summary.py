"""The status cache: what hooks need to know of the list, in a file that stays small.

It has the stat stamp of the list it was made from. While that is the stamp of the list, the list is unchanged
since harness wrote it, and need not be parsed. Standard library only.
Source: docs/design.md, "The summary".
"""

from __future__ import annotations

import json
import os

from harness_lib.system.place import own_files

TYPE_CHECKING = False  # as in find_root.py: hooks start with this
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any, TypedDict

    from harness_lib.state.api import Questions
    from harness_lib.system.place.roots import Root
    from harness_lib.task import Mode, State, StopReason, Task

    # At run time the cache is a plain dict; with its type mypy finds a misspelt key.

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

        `stamp` is [size in bytes, inode, mtime in ns, ctime in ns] of the list that it was made from. The
        clock that has dated what it says is `ahead` of this machine's by so many seconds.
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


# Raised with every change of the shape of this file or of what `writing` writes: then the stamp of another
# version proves nothing.
FORMAT = 8
LISTED = 100
SHORT = 300

Stamp = list[int]


def stamp(info: os.stat_result) -> Stamp:
    """Return [size in bytes, inode, mtime in ns, ctime in ns]."""
    return [info.st_size, info.st_ino, info.st_mtime_ns, info.st_ctime_ns]


def build(state: State, now: datetime, asked: Questions | None = None) -> Summary:
    """Return the status cache of `state`; whoever publishes it adds the stamp of its file.

    `asked`: the answers about a list that is too long for its tasks to be in `state`.
    """
    from harness_lib.rules import rechecks  # noqa: PLC0415 (see above)
    from harness_lib.state import reading  # noqa: PLC0415
    from harness_lib.state.answers import Answers  # noqa: PLC0415

    asked = asked or Answers(state, now)
    counts, upcoming, working = asked.counts(), asked.next_ready(), asked.in_progress()
    unreachable = [finding.task_id for finding in asked.unreachable()]
    unproven = [task for task in asked.unproven() if task.status == "completed"]
    checked = [task.recheck for task in state.tasks if task.recheck]
    sessions: Any = None if state.sessions is None else [reading.written(each) for each in state.sessions]
    return {
        "format": FORMAT,
        "stamp": [],
        "ahead": 0.0,
        "version": state.version,
        "mode": state.session_config.concurrency_mode,
        "counts": {
            "total": counts.total,
            "completed": counts.completed,
            "failed": counts.failed,
            "pending": counts.pending,
            "in_progress": counts.in_progress,
            "blocked": counts.blocked,
            "retryable": counts.retryable,
            "unreachable": len(unreachable),
            "attempts": counts.attempts,
            "checkpoints": counts.checkpoints,
        },
        "work_remains": asked.work_remains(),
        "stop": asked.no_work(),
        "next": _named(upcoming) if upcoming else None,
        "in_progress": [_worked_on(task) for task in working[:LISTED]],
        "unreachable": unreachable[:LISTED],
        "unproven": [_named(task) for task in unproven[:LISTED]],
        # It changes with every recorded re-check.
        "rechecks": f"{len(checked)} {max((each.at or '' for each in checked), default='')}".strip(),
        "red": [_named(task) for task in rechecks.red(state.tasks)[:LISTED]],
        "sessions": sessions,
        "session_count": state.session_count,
        "sessions_spent": asked.sessions_spent() is not None,
        "max_tasks_per_session": state.session_config.max_tasks_per_session,
        "last_failure": _last_failure(state.tasks or (*working, *([upcoming] if upcoming else ()))),
    }


def _named(task: Task) -> TaskName:
    return {"id": task.id, "title": task.title[:SHORT]}


def _worked_on(task: Task) -> WorkingTask:
    return {
        "id": task.id,
        "title": task.title[:SHORT],
        "attempts": task.attempts,
        "checkpoints": len(task.checkpoints),
        "claimed_by": task.claimed_by,
        "claimed_at": task.claimed_at,
        "lease_expires_at": task.lease_expires_at,
        "worktree": task.worktree,
        "halt": task.halt and task.halt[:SHORT],
    }


def _last_failure(tasks: Iterable[Task]) -> Failure | None:
    failed = [task for task in tasks if task.error_log and not task.is_done]
    if not failed:
        return None
    # A failure without a time (of the legacy protocol) counts as older than every one with a time.
    last = max(failed, key=lambda task: task.failed_at or "")
    return {"id": last.id, "text": last.error_log[-1][:SHORT]}


def read(root: Root) -> Summary | None:
    """Return the status cache if it was made from the list as it is now, else None."""
    kept: Summary | None = read_stamped(os.fspath(root.state), os.fspath(root.summary))
    return kept


def read_stamped(state: str, path: str) -> Any:
    """Return the document at `path` if it was made from the file `state` as it is now, else None."""
    try:
        info = os.stat(state)  # noqa: PTH116 (importing pathlib takes longer than all the rest of a hook)
    except OSError:
        return None
    return read_for(path, info)


def read_for(path: str, info: os.stat_result) -> Any:
    """Return the document at `path` if it was made from the file that `info` describes, else None."""
    data = last(path)
    return data if data is not None and data.get("stamp") == stamp(info) else None


def last(path: str) -> Any:
    """Return the document at `path`, whether or not the list has changed since; None if it is invalid."""
    try:
        data = json.loads(own_files.read(path))
    except (OSError, ValueError, RecursionError):
        # It is only a cache, and may be deleted or torn at any time.
        return None
    return data if isinstance(data, dict) and data.get("format") == FORMAT else None


def write(root: Root, data: Summary) -> None:
    """Replace the status cache; not durable, because after a power cut it merely no longer fits the list."""
    from harness_lib.system import fs  # noqa: PLC0415

    text = json.dumps(data, separators=(",", ":"), check_circular=False)
    fs.write(root.summary, text.encode(), durable=False, make=True)

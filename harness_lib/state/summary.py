"""The status cache: what hooks need to know of the list, in a file that stays small.

It has the stat stamp of the list it was made from. While that is the stamp of the list, the list is unchanged
since harness wrote it, and need not be parsed. Standard library only.
Source: docs/design.md, "The summary".
"""

from __future__ import annotations

import json
import os

from harness_lib.system.files import nofollow

TYPE_CHECKING = False  # as in find_root.py: hooks start with this
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import Any

    from harness_lib.state.api import Questions
    from harness_lib.state.summary_shape import Failure, Summary, TaskName, WorkingTask
    from harness_lib.system.place.roots import Root
    from harness_lib.task import State, Task

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
        "rechecks": _rechecks(state),
        "red": [_named(task) for task in rechecks.red(state.tasks)[:LISTED]],
        "sessions": sessions,
        "session_count": state.session_count,
        "sessions_spent": asked.sessions_spent() is not None,
        "max_tasks_per_session": state.session_config.max_tasks_per_session,
        "last_failure": _last_failure(state.tasks or (*working, *([upcoming] if upcoming else ()))),
    }


def _rechecks(state: State) -> str:
    """Return a text that changes with every recorded re-check."""
    found = [task.recheck for task in state.tasks if task.recheck is not None]
    return f"{len(found)} {max((each.at or '' for each in found), default='')}".strip()


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
        data = json.loads(nofollow.read(path))
    except (OSError, ValueError, RecursionError):
        # It is only a cache, and may be deleted or torn at any time.
        return None
    return data if isinstance(data, dict) and data.get("format") == FORMAT else None


def write(root: Root, data: Summary) -> None:
    """Replace the status cache; not durable, because after a power cut it merely no longer fits the list."""
    from harness_lib.system import fs  # noqa: PLC0415

    text = json.dumps(data, separators=(",", ":"), check_circular=False)
    fs.write(root.summary, text.encode(), durable=False, make=True)

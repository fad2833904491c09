"""Compute leases: how long a claim is valid while its worker is silent.

A lease is permission to try, and it trades mutual exclusion for progress.
It does not say that its holder is alive, nor that nobody else works on the task: a holder that slept past the
end does not know it, and clocks of two machines differ.
So a lease alone allows no write: every outcome checks the claim's fencing token under the state
lock, and a worker that comes back late changes nothing.
Source: docs/design.md, "Leases and fences"; docs/protocol.md, "Concurrency Control".
"""

from __future__ import annotations

from datetime import datetime

from harness_lib import timestamps
from harness_lib.errors import UsageError
from harness_lib.task import Task

DEFAULT_SECONDS = 1800
LONGEST_SECONDS = 365 * 24 * 3600
VARIABLE = "HARNESS_LEASE_SECONDS"
# One session may have several workers, each in a work tree of its own.
SLOT = "#"


def seconds(env_value: str | None) -> int:
    """Return how long a lease lasts, in seconds: the value of the variable, or the default if it is empty.

    Raises UsageError unless it is a whole number from 1 to `LONGEST_SECONDS`.
    """
    text = (env_value or "").strip()
    if not text:
        return DEFAULT_SECONDS
    whole = text.isascii() and text.isdigit() and len(text) <= len(str(LONGEST_SECONDS))
    if not whole or not 1 <= int(text) <= LONGEST_SECONDS:
        message = f"{VARIABLE} is {text[:40]!r}: not a whole number of seconds from 1 to {LONGEST_SECONDS}."
        raise UsageError(message, f"Unset it for {DEFAULT_SECONDS}, or set it to a number such as 900.")
    return int(text)


def expires(now: datetime, lease_seconds: int) -> str:
    """Return the time at which a lease taken or renewed `now` ends."""
    return timestamps.later(now, lease_seconds)


def end(now: datetime, lease_seconds: int | None) -> str | None:
    """Return the new `lease_expires_at`; None (exclusive mode) is a claim without a lease."""
    return None if lease_seconds is None else expires(now, lease_seconds)


def expired(task: Task, now: datetime) -> bool:
    """Return whether the claim's lease has ended; a claim without a lease never expires."""
    return task.lease_expires_at is not None and timestamps.parse(task.lease_expires_at) <= now


def is_same(current: Task | None, then: Task) -> bool:
    """Return whether `current` is in progress under the same claim as `then`.

    The fencing token distinguishes claims of harness; agents of the legacy protocol raise none, but write a
    name.
    """
    return (
        current is not None
        and current.status == "in_progress"
        and (current.fence, current.claimed_by) == (then.fence, then.claimed_by)
    )


def is_mine(task: Task, worker: str) -> bool:
    """Return whether `worker` holds the claim; a task in progress without a name belongs to nobody."""
    return task.status == "in_progress" and bool(worker) and task.claimed_by == worker


def works_for(worker: str | None, session_worker: str) -> bool:
    """Return whether `worker` opened the session, or is one of its slots (`name#2`)."""
    return worker is not None and (worker == session_worker or worker.startswith(session_worker + SLOT))


def slot(session_worker: str, number: int) -> str:
    """Return the name under which slot `number` of a session claims tasks."""
    return f"{session_worker}{SLOT}{number}"

"""A shell command of a task. Plain data."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """A command, its directory, its time limit in seconds, and the task that it belongs to."""

    task: str
    text: str | None
    cwd: str | None
    timeout_seconds: int

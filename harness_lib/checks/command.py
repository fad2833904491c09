"""A command for the shell, as a task names one: plain data."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """The command, where it runs, and the seconds until it is stopped; `task` is who asks for it."""

    task: str
    text: str | None
    cwd: str | None
    timeout_seconds: int

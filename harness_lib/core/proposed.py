"""Tell others of the tasks that unattended agents have proposed and nobody has decided on yet."""

from __future__ import annotations

from harness_lib.core import quoting
from harness_lib.state.api import Questions
from harness_lib.task import Task
from harness_lib.text import some

SHOWN = 5
PREFIX = "proposed-"


def number(task: Task) -> int:
    """Return the number that a person types for a proposed task; 0 if somebody else has named it."""
    digits = task.id.removeprefix(PREFIX)
    return int(digits) if digits.isascii() and digits.isdigit() else 0


def lines(questions: Questions) -> list[str]:
    """Return the lines for whoever looks at the list or at the end of a run: what waits, and what to type."""
    waiting = questions.proposals()
    if not waiting:
        return []
    titles = some([f"{number(task)}. {quoting.title(task)}" for task in waiting], SHOWN)
    return [f"{len(waiting)} proposed by agents, nothing of it runs yet: {titles} (harness add --proposed)"]

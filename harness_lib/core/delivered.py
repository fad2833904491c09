"""Name what a completed task has put into the history: commits, their files, how to take them back."""

from __future__ import annotations

from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import quoting
from harness_lib.state.api import Questions
from harness_lib.system.git import snapshot
from harness_lib.system.git.repository import Git
from harness_lib.task import Task

SHOWN = 10
MOST = 1000
LENGTH = 200
SHORT = 12


class Delivered(NamedTuple):
    """`commits` are the task's own, newest first, made on `since`; `files` what they changed."""

    commits: tuple[str, ...]
    files: tuple[str, ...]
    since: str

    @property
    def show_command(self) -> str:
        """Return the command that shows the work."""
        if len(self.commits) == 1:
            return typed.git("show", self.commits[0][:SHORT])
        return typed.git("log", "--patch", self._span)

    @property
    def revert_command(self) -> str:
        """Return the command that takes the work back, by new commits."""
        return typed.git("revert", self.commits[0][:SHORT] if len(self.commits) == 1 else self._span)

    @property
    def _span(self) -> str:
        return f"{self.since[:SHORT]}..{self.commits[0][:SHORT]}"

    def lines(self, task: Task) -> list[str]:
        """Return what a person wants to know of it."""
        names = quoting.named(self.files, SHOWN, LENGTH)
        again = typed.harness("retry", task.id)
        return [
            f"its work: {self.show_command}",
            f"files ({len(self.files)}): {names}",
            f"to undo it: {self.revert_command}; to have it done anew after that: {again}",
        ]


def of(git: Git, questions: Questions, task: Task) -> Delivered | None:
    """Return what `task` has delivered; None if it committed nothing, or nobody knows."""
    tip, base = task.completed_commit, task.started_at_commit
    if task.status != "completed" or not tip or not base or not (git.exists(tip) and git.exists(base)):
        return None
    own: list[str] = []
    # A run puts the work of several tasks on top of each other.
    for oid in git.lines("rev-list", "--first-parent", f"--max-count={MOST}", tip, f"^{base}"):
        if _maker(git, questions, oid) not in (None, task.id):
            break
        own.append(oid)
    if not own:
        return None
    since = git.ref(f"{own[-1]}^") or base
    return Delivered(tuple(own), snapshot.difference(git, since, tip), since)


def _maker(git: Git, questions: Questions, commit: str) -> str | None:
    """Return the task whose work `commit` holds; None if no task names it.

    A task that committed nothing names the commit that it found.
    """
    tasks = [task for task in questions.tasks(questions.made(commit)) if task.started_at_commit != commit]
    if len(tasks) > 1:
        # In a run both began on an earlier commit. The subject there names the task.
        subject = git.text("log", "-1", "--format=%s", commit)
        tasks = [task for task in tasks if subject.startswith(f"[{task.id}] ")] or tasks
    return tasks[0].id if tasks else None

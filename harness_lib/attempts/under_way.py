"""Refuse to touch a checkout in which the user's merge, rebase or the like is in progress.

A work tree of a run belongs to its attempt, so an operation in progress there was begun by the agent, and is
ended with the attempt. In the user's checkout it is not known who began it: ending it could lose work.
"""

from __future__ import annotations

from harness_lib import typed
from harness_lib.errors import RefusedError
from harness_lib.system.git import status
from harness_lib.system.git.repository import Git, to_end
from harness_lib.task import Task
from harness_lib.text import some

NAMED = 5


def require_none(git: Git, then: str) -> None:
    """Raise RefusedError if a git operation is in progress, or files have unresolved conflicts.

    `then`: what to type once it has ended.
    """
    operation, unmerged = git.under_way(), status.unmerged(git)
    if operation is None and not unmerged:
        return
    way = f"finish it with git ({to_end(operation)}; git status shows the other ways)" if operation else ""
    raise RefusedError(
        f"{_what(git, operation, unmerged)} Nothing was changed, and no attempt was counted.",
        "If you are an agent and did not begin it, ask the user. Otherwise "
        f"{way or 'resolve them and mark each file with git add'}, then type: {then}",
    )


def _what(git: Git, operation: str | None, unmerged: tuple[str, ...]) -> str:
    names = some([repr(path) for path in unmerged], NAMED)
    if operation is None:
        return f"Conflicts in {git.top} are not resolved: {names}."
    conflicts = f", with conflicts in {names}" if unmerged else ""
    return f"A {operation} is under way in {git.top}{conflicts}."


def require_none_of_user(git: Git, task: Task, then: str | None = None) -> None:
    """Do the same for the work tree of `task`, unless it belongs to a run; `then`: `harness finish`."""
    if task.gate is None or task.gate.target is None:
        require_none(git, then or typed.harness("finish", task.id))

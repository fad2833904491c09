"""Decide about re-checks: checks of completed tasks, run again on a clean checkout of a commit.

A task is red where its check failed there and nothing excuses it. It stays red until its check has run again,
or until it is done again: later commits alone prove nothing.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from harness_lib import sha256
from harness_lib.rules import input_files
from harness_lib.task import Task

SHORT = 12
# With more completed tasks, only those whose files have changed are checked again.
MOST = 200
Scope = Literal["all", "changed", "none"]
# A check and the directory in which it runs.
Key = tuple[str | None, str | None]
# Tells whether a commit has the content to be checked.
IsThere = Callable[[str], bool]
# How many commits of one task are examined.
OWN = 50
_WORDS = re.compile(r"[^\s;&|()<>$`'\"={}\[\]*?!]+")


def key(task: Task) -> Key:
    """Return the check of `task`: tasks with the same key share one run on the same content."""
    return task.validation.command, task.validation.cwd


def whole_key(task: Task) -> tuple[Key, str]:
    """Return `key` with the held-out check of the task."""
    return key(task), task.validation.hidden.sha256 if task.validation.hidden else ""


def can_be_rechecked(task: Task) -> bool:
    """Return whether `task` is completed and has a check."""
    return task.is_done and bool(task.validation.command and task.validation.command.strip())


def passed_on(task: Task) -> str | None:
    """Return the commit on which the check of the completed `task` has passed last; None if on none."""
    if not can_be_rechecked(task):
        return None
    if not task.recheck:
        return task.completed_commit
    return task.recheck.commit if task.recheck.passed else None


def proof(task: Task, commit: str | None) -> int | None:
    """Return a hash of the check of `task` and the `commit`; None without a commit."""
    return None if commit is None else number([*key(task), commit])


def number(texts: Sequence[object]) -> int:
    """Return a hash of `texts`, a number of 60 bits."""
    return int(sha256.digest(json.dumps(texts).encode())[:15], 16)


CLAIMED_ON = "was claimed on"
ON_NO_BRANCH = f"{CLAIMED_ON} no branch"


def was_completed_elsewhere(task: Task) -> bool:
    """Return whether `task` was completed on another branch than the one that it was claimed on."""
    return _was_said(task, CLAIMED_ON)


def was_completed_on_no_branch(task: Task) -> bool:
    """Return whether no branch had the work of `task` when it was completed."""
    return _was_said(task, ON_NO_BRANCH)


def _was_said(task: Task, words: str) -> bool:
    return task.is_done and any(f"{task.id} {words}" in sentence for sentence in task.look_at)


def is_red(task: Task) -> bool:
    """Return whether the check of the completed `task` failed on a clean checkout, and nothing excuses it."""
    found = task.recheck
    return task.is_done and found is not None and not found.passed and found.excuse is None


def is_elsewhere(task: Task) -> bool:
    """Return whether the check of the completed `task` failed on a commit that does not have its work."""
    return task.is_done and task.recheck is not None and task.recheck.excuse == "elsewhere"


def is_flaky(task: Task) -> bool:
    """Return whether the check of the completed `task` failed, and passed when it ran once more."""
    return task.is_done and task.recheck is not None and task.recheck.passed and bool(task.recheck.tail)


def red(tasks: Iterable[Task]) -> list[Task]:
    """Return the red ones of `tasks`."""
    return [task for task in tasks if task.recheck and is_red(task)]


def unknown(tasks: Iterable[Task], is_there: IsThere) -> list[Task]:
    """Return the tasks whose check has not run on the content for which `is_there` is true."""
    asked = (task for task in tasks if can_be_rechecked(task))
    return [task for task in asked if not task.recheck or not is_there(task.recheck.commit)]


def due(tasks: Sequence[Task], is_there: IsThere) -> list[Task]:
    """Return the tasks whose check has not run on the content for which `is_there` is true.

    If all have run, return those that failed there, the oldest run first: the reason may be
    outside of what is committed, and be gone by now.
    """
    failed = [task for task in tasks if can_be_rechecked(task) and task.recheck and not task.recheck.passed]
    return unknown(tasks, is_there) or sorted(
        failed, key=lambda task: (task.recheck and task.recheck.at) or ""
    )


def are_awaited(tasks: Iterable[Task], since: str | None) -> bool:
    """Return whether a task that was completed after `since` has not been checked again."""
    return any(
        can_be_rechecked(task) and not task.recheck and (task.completed_at or "") >= (since or "")
        for task in tasks
    )


def words(task: Task) -> str:
    """Return a few words about the completed `task`: red, flaky, not reproducible, and the like."""
    found = task.recheck
    if found is None:
        return "not re-checked"
    at = found.commit[:SHORT]
    if found.passed:
        return f"checked at {at}"
    match found.excuse:
        case "not_reproducible":
            return f"not reproducible at {at}"
        case "elsewhere":
            return f"finished elsewhere: its commit is not in the history of {at}"
        case "held_out":
            return f"its held-out check could not run at {at}"
        case None:
            return f"its check fails at {at}"


def needed(tasks: Sequence[Task]) -> list[str]:
    """Return the files outside git that checks of `tasks` need, each once."""
    found = (task.recheck for task in tasks)
    return list(dict.fromkeys(path for each in found if each for path in each.missing))


class Commit(NamedTuple):
    """A commit of a branch, and the files that it changed."""

    oid: str
    files: tuple[str, ...]


class History:
    """The examined part of a branch: its commits, the last one first, and the files of the last one."""

    def __init__(self, commits: Sequence[Commit], files: Iterable[str]) -> None:
        self.commits = commits
        self.places = {commit.oid: place for place, commit in enumerate(commits)}
        # For each file the place of the last commit that changed it.
        self.changes: dict[str, int] = {}
        for place, commit in enumerate(commits):
            for path in commit.files:
                self.changes.setdefault(path, place)
        self.known = {above for path in (*files, *self.changes) for above in _with_directories(path)}

    def changed_since(self, place: int) -> Iterator[str]:
        """Yield the files that commits after the one at `place` have changed."""
        return (path for path, last in self.changes.items() if last < place)


def _with_directories(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def of(tasks: Iterable[Task], done: Iterable[Task], history: History) -> list[Task]:
    """Return the `tasks` whose check may have another result than in its last run.

    A check depends on the files that its task has changed (`done` are all completed tasks), on those that it
    names, and on the settings of its test runner; one that names no file depends on all files.
    """
    owners = {task.completed_commit: task.id for task in done}
    return [task for task in tasks if _may_differ(task, owners, history)]


def _may_differ(task: Task, owners: Mapping[str | None, str], history: History) -> bool:
    found = task.recheck
    place = history.places.get(found.commit if found else task.completed_commit or "")
    if place is None or (found and not found.passed):
        return True
    own, is_input = _own_files(task, owners, history), _is_input(task, history)
    return any(path in own or is_input(path) for path in history.changed_since(place))


def _own_files(task: Task, owners: Mapping[str | None, str], history: History) -> set[str]:
    """Return the files that the commits of `task` in `history` have changed."""
    first = history.places.get(task.completed_commit or "")
    files: set[str] = set()
    for commit in history.commits[first : first + OWN] if first is not None else ():
        if commit.oid == task.started_at_commit or owners.get(commit.oid, task.id) != task.id:
            break
        files.update(commit.files)
    return files


def _is_input(task: Task, history: History) -> Callable[[str], bool]:
    """Return a function that tells whether a file is an input of the check of `task`, by its command."""
    command = task.validation.command or ""
    words = (
        posixpath.normpath(posixpath.join(task.validation.cwd or "", word))
        for word in _WORDS.findall(command)
    )
    named = history.known.intersection(word.partition("::")[0] for word in words)
    settings = [glob.removeprefix("**/") for glob in input_files.of(command).config]

    def is_input(path: str) -> bool:
        if not named or not named.isdisjoint(_with_directories(path)):
            return True
        return any(fnmatchcase(f"/{path}", f"*/{glob}") for glob in settings)

    return is_input

"""Which checks of completed tasks may say something else than when they ran last, by what has changed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from harness_lib.rules import judges
from harness_lib.task import Task

# Commits of one task that are looked at.
OWN = 50
_WORDS = re.compile(r"[^\s;&|()<>$`'\"={}\[\]*?!]+")


class Commit(NamedTuple):
    """A commit of a branch, and the files that it changed."""

    oid: str
    files: tuple[str, ...]


class History:
    """A branch as far as it was looked at: its commits, the last one first, and the files of the last one."""

    def __init__(self, commits: Sequence[Commit], files: Iterable[str]) -> None:
        self.commits = commits
        self.places = {commit.oid: place for place, commit in enumerate(commits)}
        # Of each file the place of the last commit that has changed it.
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
    """Return those of `tasks` whose check may say something else than when it ran last.

    A check goes by the files that its task has changed (`done` are all completed tasks), by those that it
    names, and by the settings of its test runner; one that names no file goes by all of them.
    """
    owners = {task.completed_commit: task.id for task in done}
    return [task for task in tasks if _may_differ(task, owners, history)]


def _may_differ(task: Task, owners: Mapping[str | None, str], history: History) -> bool:
    found = task.recheck
    place = history.places.get(found.commit if found else task.completed_commit or "")
    if place is None or (found is not None and not found.passed):
        return True
    own, judged = _own_files(task, owners, history), _judged(task, history)
    return any(path in own or judged(path) for path in history.changed_since(place))


def _own_files(task: Task, owners: Mapping[str | None, str], history: History) -> set[str]:
    """Return the files that the commits of `task` have changed, as far as they are in `history`."""
    first = history.places.get(task.completed_commit or "")
    files: set[str] = set()
    for commit in history.commits[first : first + OWN] if first is not None else ():
        if commit.oid == task.started_at_commit or owners.get(commit.oid, task.id) != task.id:
            break
        files.update(commit.files)
    return files


def _judged(task: Task, history: History) -> Callable[[str], bool]:
    """Return what says of a file whether the check of `task` goes by it, as far as its command tells."""
    command = task.validation.command or ""
    words = (
        posixpath.normpath(posixpath.join(task.validation.cwd or "", word))
        for word in _WORDS.findall(command)
    )
    named = history.known.intersection(word.partition("::")[0] for word in words)
    settings = [glob.removeprefix("**/") for glob in judges.of(command).config]

    def judged(path: str) -> bool:
        if not named or not named.isdisjoint(_with_directories(path)):
            return True
        return any(fnmatchcase(f"/{path}", f"*/{glob}") for glob in settings)

    return judged

"""Find, show and restore work that is kept in commits under refs of harness (backup refs).

`git apply` restores it, which writes nothing unless all of it applies. A file with uncommitted changes, or
one that git does not track, is never written to.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from harness_lib.system.git import locks, snapshot, trees
from harness_lib.system.git.calls import covers
from harness_lib.system.git.checkout import obstructed
from harness_lib.system.git.trees import GITLINK

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness_lib.system.git.repository import Git

_FIELDS = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(subject)"
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index")
# As `git apply` reads it, whatever the user likes to see (`diff.noprefix`, `diff.context`).
_PATCH = (*_DIFF, "--binary", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/")
_REJECTED = re.compile(r"^error: (.+?): (?:patch does not apply|.*exists.*|.*No such file.*)$", re.MULTILINE)


class Rescue(NamedTuple):
    """A ref, the commit it keeps, when that was made (seconds since 1970), and its subject."""

    ref: str
    oid: str
    at: int
    subject: str


class Applied(NamedTuple):
    """The result of restoring: nothing was written if a path is unknown, in the way or does not apply."""

    written: tuple[str, ...] = ()
    in_the_way: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def listed(git: Git, prefix: str) -> list[Rescue]:
    """Return the kept work below `prefix`, newest first."""
    # The last --sort is the first key.
    order = ("--sort=-version:refname", "--sort=-committerdate")
    lines = git.lines("for-each-ref", *order, f"--format={_FIELDS}", prefix)
    parts = (line.split("\0", 3) for line in lines)
    return [Rescue(ref, oid, int(at or 0), subject) for ref, oid, at, subject in parts]


def origin(git: Git, oid: str) -> str:
    """Return the base of the kept work: its merge base with HEAD.

    Without a common history, the parent of `oid`, or the empty tree.
    """
    result = git.run("merge-base", "HEAD", oid, check=False)
    if result.returncode == 0:
        return os.fsdecode(result.stdout).strip()
    return git.parent(oid) or git.empty_tree()


def stat(git: Git, old: str, new: str, files: int) -> str:
    """Return `git diff --stat` of at most so many files, and its summary."""
    return "\n".join(git.lines(*_DIFF, f"--stat=100,60,{files}", old, new, "--"))


def diff(git: Git, old: str, new: str) -> list[str]:
    """Return the lines of the difference between two commits or trees, binary files by name only."""
    return git.lines(*_DIFF, old, new, "--")


def apply(git: Git, oid: str, excluded_paths: Sequence[str] = (), only: Sequence[str] = ()) -> Applied:
    """Apply the changes between `oid` and its origin to the work tree, all or none; HEAD and index stay.

    Both `excluded_paths` and `only` name files, or directories with all below them: the first are never
    written, and with `only` nothing else is.
    """
    base = origin(git, oid)
    differences = trees.changed(git, base, oid)
    unknown = tuple(name for name in only if not any(covers((name,), path) for path in differences))
    if unknown:
        return Applied(unknown=unknown)
    with locks.hold(git):
        present = snapshot.capture(git, excluded_paths)
        differs = trees.changed(git, present, oid)
        asked = {path: pair for path, pair in differences.items() if not only or covers(only, path)}
        excluded = tuple(path for path in asked if covers(excluded_paths, path))
        changed = {path: pair for path, pair in asked.items() if path not in excluded}
        foreign = {
            path for path, pair in changed.items() if any(entry and entry[0] == GITLINK for entry in pair)
        }
        paths = [path for path in changed if path in differs and path not in foreign]
        in_the_way = _in_the_way(git, present, paths)
        if in_the_way or not paths:
            return Applied(in_the_way=in_the_way, left_out=tuple(foreign), excluded=excluded)
        unfit = _apply_patch(git, base, oid, paths)
        return Applied(() if unfit else tuple(paths), (), unfit, tuple(foreign), excluded)


def _in_the_way(git: Git, present: str, paths: Collection[str]) -> tuple[str, ...]:
    """Return which of `paths` have uncommitted content, ignored files included."""
    head = git.head() or git.empty_tree()
    unsaved = trees.changed(git, head, present)
    known = trees.entries(git, present)
    return tuple(
        path
        for path in paths
        if path in unsaved
        or (path not in known and os.path.lexists(git.top / path))
        or obstructed(git.top, path)
    )


def _apply_patch(git: Git, base: str, oid: str, paths: Collection[str]) -> tuple[str, ...]:
    """Apply the changes of `paths`; return the paths that git rejected."""
    target = trees.with_from(git, git.tree_of(base), oid, paths)
    patch = git.run(*_PATCH, base, target, "--").stdout
    done = git.run("apply", "--whitespace=nowarn", "-", stdin=patch, check=False)
    if done.returncode == 0:
        return ()
    complaint = os.fsdecode(done.stderr)
    named = tuple(dict.fromkeys(_REJECTED.findall(complaint)))
    return named or (complaint.strip() or "git apply failed",)

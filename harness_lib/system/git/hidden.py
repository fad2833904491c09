"""Files that git was told not to look at: assume-unchanged, skip-worktree, outside of a sparse checkout.

What stands on disk is content like any other, whatever marks the index has for it: a mark would hide it from
every capture, and so from the commit, the rescue and the rollback.
What a sparse checkout has left out does not stand there, and is no deletion.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness_lib.system.git import scratch
from harness_lib.system.git.calls import decode, encode

if TYPE_CHECKING:
    from harness_lib.system.git.repository import Git

_SKIPPED = "S"
_UNMERGED = "M"
# In a sparse checkout git takes some marks off by itself as it reads the index.
AS_MARKED = ("-c", "core.sparseCheckout=false")


@contextmanager
def looked_at(git: Git) -> Iterator[Mapping[str, str]]:
    """Yield the environment for a git that sees what the marks hide; an empty one where there are none."""
    marked = _marked(git)
    if not marked:
        yield {}
        return
    with scratch.index(git.git_dir, copy=True) as env:
        _unmark(git, env, marked, None)
        yield env


def unmark(git: Git, env: Mapping[str, str], left_out: Collection[str] | None = None) -> None:
    """Take the marks off the private index in `env`, but for files that are left out of the work tree.

    `left_out` names those that were left out before; then any other file that is missing was deleted.
    None: nobody knows, so that a file that git skips and that is missing was left out.
    """
    marked = _marked(git)
    if marked:
        _unmark(git, env, marked, left_out)


def left_out(git: Git) -> tuple[str, ...]:
    """Return the tracked files that git was told to skip and that are not there."""
    return tuple(path for path, tag in _marked(git).items() if _is_skipped(tag) and not _stands(git, path))


def marked(git: Git) -> tuple[str, ...]:
    """Return the files that git does not look at although they stand there."""
    return tuple(path for path in _marked(git) if _stands(git, path))


def take_marks(git: Git) -> Mapping[str, str]:
    """Take the marks off the index itself, and return what `put_marks` needs."""
    marks = _marked(git)
    if marks:
        _unmark(git, {}, marks, None)
    return marks


def put_marks(git: Git, marks: Mapping[str, str]) -> None:
    """Put `marks` back on the files that the index still has."""
    if not marks:
        return
    tracked = set(decode(git.run(*AS_MARKED, "ls-files", "-z").stdout))
    assumed, skipped = _kinds({path: tag for path, tag in marks.items() if path in tracked})
    _update(git, {}, ("--assume-unchanged", assumed), ("--skip-worktree", skipped))


def unmerged(git: Git) -> tuple[str, ...]:
    """Return the files that are in a merge conflict which nobody has marked as resolved."""
    return tuple(path for path, tag in _tagged(git).items() if tag == _UNMERGED)


def _marked(git: Git) -> dict[str, str]:
    """Return path → tag of `git ls-files -v` for every file that has a mark."""
    return {path: tag for path, tag in _tagged(git).items() if is_mark(tag)}


def _tagged(git: Git) -> dict[str, str]:
    """Return path → tag of `git ls-files -v` for every file that is not just tracked."""
    records = decode(git.run(*AS_MARKED, "ls-files", "-v", "-z").stdout)
    return {path: tag for tag, _, path in (r.partition(" ") for r in records) if tag != "H"}


def is_mark(tag: str) -> bool:
    """Say whether a tag of `git ls-files -v` is that of a marked file."""
    return tag.islower() or tag == _SKIPPED


def _is_skipped(tag: str) -> bool:
    return tag.upper() == _SKIPPED


def _stands(git: Git, path: str) -> bool:
    return os.path.lexists(git.top / path)


def _unmark(
    git: Git, env: Mapping[str, str], marks: Mapping[str, str], left_out: Collection[str] | None
) -> None:
    assumed, skipped = _kinds(marks)
    shown = [
        path for path in skipped if _stands(git, path) or (left_out is not None and path not in left_out)
    ]
    _update(git, env, ("--no-assume-unchanged", assumed), ("--no-skip-worktree", shown))


def _kinds(marks: Mapping[str, str]) -> tuple[list[str], list[str]]:
    assumed = [path for path, tag in marks.items() if tag.islower()]
    return assumed, [path for path, tag in marks.items() if _is_skipped(tag)]


def _update(git: Git, env: Mapping[str, str], *changes: tuple[str, list[str]]) -> None:
    # One at a time: each of these options ends what the command does with a file.
    for option, paths in changes:
        if paths:
            git.run(*AS_MARKED, "update-index", option, "-z", "--stdin", env=env, stdin=encode(paths))

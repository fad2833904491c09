"""What differs from HEAD in a work tree, and between two work trees of a commit.

What stands on disk is content like any other, whatever marks the index has for it (assume-unchanged,
skip-worktree): a mark would hide it from every capture, and so from the commit, the rescue and the rollback.
What a sparse checkout has left out does not stand there, and is no deletion.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from harness_lib.system.git import caches, clones, trees
from harness_lib.system.git.calls import covers, decode, encode
from harness_lib.system.git.repository import Git

_SKIPPED = "S"
_UNMERGED = "M"
# In a sparse checkout git takes some marks off by itself as it reads the index.
AS_MARKED = ("-c", "core.sparseCheckout=false")
# Between two work trees so many are named, and so many files of a directory are compared.
MOST = 20
LOOKED_AT = 10_000
# No check fails for want of one, but for those that hold what was installed.
CACHES = caches.NAMES - {"node_modules", ".venv", "venv"}


class Changes(NamedTuple):
    """What differs from HEAD: tracked files, and untracked ones (a nested repository ends in `/`)."""

    tracked: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


def changes(git: Git, excluded_paths: Sequence[str] = ()) -> Changes:
    """Return what differs from HEAD, without `excluded_paths` (files, or directories with all below them)."""
    # To look for changes in a submodule git starts another in it, which its settings may lead anywhere.
    ignored = "dirty" if clones.is_agents(git) else "untracked"
    with looked_at(git) as env:
        output = git.run(
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            f"--ignore-submodules={ignored}",
            env=env,
        ).stdout
    paths: dict[str, list[str]] = {"tracked": [], "untracked": []}
    for record in decode(output):
        kind, path = _status(record)
        if kind and not covers(excluded_paths, path.rstrip("/")):
            paths[kind].append(path)
    return Changes(tuple(paths["tracked"]), tuple(paths["untracked"]))


def _status(record: str) -> tuple[str, str]:
    """Return ("tracked" or "untracked", path) of one record of `status --porcelain=v2 -z`."""
    if record.startswith("? "):
        return "untracked", record[2:]
    fields = {"1": 8, "u": 10}.get(record[:1])
    return ("tracked", record.split(" ", fields)[fields]) if fields else ("", "")


@contextmanager
def looked_at(git: Git) -> Iterator[Mapping[str, str]]:
    """Yield the environment for a git that sees what the marks hide; an empty one where there are none."""
    marked = _marked(git)
    if not marked:
        yield {}
        return
    with trees.index(git.git_dir, copy=True) as env:
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


def _tagged(git: Git) -> Mapping[str, str]:
    """Return path → tag of `git ls-files -v` for every file that is not just tracked."""
    return _tagged_in(git, git.index_state())


@lru_cache(maxsize=32)
def _tagged_in(git: Git, _index: bytes) -> Mapping[str, str]:
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


def differing(there: Git, clean: Git, excluded_paths: Sequence[str]) -> tuple[str, ...]:
    """Return at most `MOST` ignored files and directories of `there` that `clean` lacks or has otherwise.

    Where there are none, return such untracked ones.
    """
    for which in (("--ignored", "--exclude-standard"), ("--exclude-standard",)):
        paths = (path for path in _others(there, *which) if not covers(excluded_paths, path.rstrip("/")))
        named = (path for path in paths if CACHES.isdisjoint(Path(path).parts))
        found = tuple(islice((each for each in named if _differs(there.top / each, clean.top / each)), MOST))
        if found:
            return found
    return ()


def kept_otherwise(there: Git, clean: Git) -> tuple[str, ...]:
    """Return at most `MOST` files that git keeps, and that have other bytes in `there` than in `clean`.

    What is not in both (a sparse checkout), or is a directory (a submodule), says nothing.
    """
    paths = (
        (path, there.top / path, clean.top / path) for path in decode(there.run("ls-files", "-z").stdout)
    )
    both = (
        (path, one, other) for path, one, other in paths if os.path.lexists(one) and os.path.lexists(other)
    )
    return tuple(
        islice((path for path, one, other in both if not one.is_dir() and not _is_same(one, other)), MOST)
    )


def _others(git: Git, *which: str) -> list[str]:
    """Return untracked files; a directory of only such files once, with a slash."""
    return sorted(decode(git.run("ls-files", "--others", "--directory", *which, "-z").stdout))


def _differs(there: Path, clean: Path) -> bool:
    if there.is_symlink() or not there.is_dir():
        return not _is_same(there, clean)
    if not clean.is_dir():
        return True
    return not all(
        _is_same(path, clean / path.relative_to(there)) for path in islice(_files(there), LOOKED_AT)
    )


def _files(directory: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(directory):
        names[:] = [name for name in names if name not in CACHES]
        yield from (Path(folder, name) for name in files)


def _is_same(one: Path, other: Path) -> bool:
    try:
        if one.is_symlink() or other.is_symlink():
            return one.is_symlink() and other.is_symlink() and one.readlink() == other.readlink()
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False

"""Which files differ between two work trees of a commit: git does not keep them, or keeps them otherwise."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from harness_lib.system.git import caches
from harness_lib.system.git.calls import covers, decode
from harness_lib.system.git.repository import Git

MOST = 20
LOOKED_AT = 10_000
# No check fails for want of one, but for those that hold what was installed.
CACHES = caches.NAMES - {"node_modules", ".venv", "venv"}


def differing(there: Git, clean: Git, keep_out: Sequence[str]) -> tuple[str, ...]:
    """Return at most `MOST` ignored files and directories of `there` that `clean` lacks or has otherwise.

    Where there are none, return such untracked ones.
    """
    for which in (("--ignored", "--exclude-standard"), ("--exclude-standard",)):
        paths = (path for path in _others(there, *which) if not covers(keep_out, path.rstrip("/")))
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

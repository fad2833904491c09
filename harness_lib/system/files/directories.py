"""List, copy and remove directories, although other processes may remove things in them at the same time.

`Path.glob` fails if a directory disappears meanwhile (before Python 3.13), and `.harness/`, work trees and
directories of refs may disappear at any moment.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def matching(directory: Path, pattern: str) -> list[Path]:
    """Return the entries of `directory` that match `pattern`; none if it is missing or cannot be read."""
    try:
        return [path for path in directory.iterdir() if fnmatch.fnmatchcase(path.name, pattern)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def below(directory: Path, pattern: str) -> Iterator[Path]:
    """Yield the files in and below `directory` whose names match `pattern`."""
    # `os.walk` skips directories that it cannot read, and follows no link.
    for folder, _, names in os.walk(directory):
        yield from (Path(folder, name) for name in names if fnmatch.fnmatchcase(name, pattern))


def copy(source: Path, target: Path) -> None:
    """Copy a file or a whole directory, links as links. Raises OSError."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def reopen(top: Path, only: str = "*") -> None:
    """Take back the user's rights on the directory `top` and, below it, on those in entries like `only`."""
    if top.is_dir() and not top.is_symlink():
        with suppress(OSError):
            top.chmod(stat.S_IMODE(top.stat().st_mode) | stat.S_IRWXU)
        for entry in matching(top, only):
            reopen(entry)


def remove_tree(directory: Path) -> None:
    """Remove the whole `directory`, as far as possible."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.is_dir():
        # Go makes its caches of modules read-only, for example.
        reopen(directory)
        shutil.rmtree(directory, ignore_errors=True)

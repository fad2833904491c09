"""What is in a directory from which others take things away at the same time: what has gone is left out.

`Path.glob` fails where a directory goes while it looks (before Python 3.13), and `.harness/`, work trees and
directories of refs may go at any moment.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def matching(directory: Path, pattern: str) -> list[Path]:
    """Return what is in `directory` and matches `pattern`, a name with `*`.

    Nothing if it is no directory, or one that may not be read.
    """
    try:
        return [path for path in directory.iterdir() if fnmatch.fnmatchcase(path.name, pattern)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def below(directory: Path, pattern: str) -> Iterator[Path]:
    """Yield the files in `directory`, and in all below it, whose names match `pattern`."""
    # It passes over what it cannot look into, and follows no link.
    for folder, _, names in os.walk(directory):
        yield from (Path(folder, name) for name in names if fnmatch.fnmatchcase(name, pattern))


def copy(source: Path, target: Path) -> None:
    """Copy a file or a directory with all that is in it, links as links. Raises OSError."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def remove_tree(directory: Path) -> None:
    """Remove `directory` with all that is in it, as far as that can be done."""
    shutil.rmtree(directory, ignore_errors=True)


def free_bytes(path: Path) -> int:
    """Return how many bytes can still be written to the disk of `path`. Raises OSError."""
    return shutil.disk_usage(path).free


def is_read_only(path: Path) -> bool:
    """Say whether the file system of `path` is mounted for reading alone. Raises OSError."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)

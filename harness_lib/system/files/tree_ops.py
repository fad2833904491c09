"""Whole trees of files: copied as they are, removed, and the room that is left for them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def copy(source: Path, target: Path) -> None:
    """Copy a file or a directory with all that is in it, links as links. Raises OSError."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def remove(directory: Path) -> None:
    """Remove `directory` with all that is in it, as far as that can be done."""
    shutil.rmtree(directory, ignore_errors=True)


def free_bytes(path: Path) -> int:
    """Return how many bytes can still be written to the disk of `path`. Raises OSError."""
    return shutil.disk_usage(path).free


def is_read_only(path: Path) -> bool:
    """Say whether the file system of `path` is mounted for reading alone. Raises OSError."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)

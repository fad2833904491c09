"""List what may be plugins in a directory."""

from __future__ import annotations

import os
import stat


def names(directory: str) -> list[str]:
    """Return the visible names in `directory`, sorted; none if it cannot be read."""
    try:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))
    except OSError:
        return []


def programs(directory: str) -> list[str]:
    """Return the names of the executable files in `directory`."""
    return [name for name in names(directory) if _is_program(os.path.join(directory, name))]


def directories(directory: str) -> list[str]:
    """Return the paths of the directories in `directory`."""
    paths = (os.path.join(directory, name) for name in names(directory))
    return [path for path in paths if is_directory(path)]


def is_directory(path: str) -> bool:
    """Return whether `path` is a directory; one that cannot be looked at is not."""
    return os.path.isdir(path)


def _is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False

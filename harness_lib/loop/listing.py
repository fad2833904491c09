"""List directories, remembered as long as they have not changed: it is asked before every state."""

from __future__ import annotations

import os
import stat
import time

# A file system's clock may stand still this long, so that a change leaves the same time behind.
_COARSE_SECONDS = 2.0


class Listing:
    """Names in directories, read again only when a directory's time of change is another."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}

    def names(self, directory: str) -> tuple[str, ...]:
        """Return the visible names in `directory`, sorted; none if it cannot be read."""
        try:
            changed = os.stat(directory).st_mtime_ns
            known = self._known.get(directory)
            if known and known[0] == changed:
                return known[1]
            names = tuple(sorted(name for name in os.listdir(directory) if not name.startswith(".")))
        except OSError:
            return ()
        if time.time() - changed / 1e9 > _COARSE_SECONDS:
            self._known[directory] = (changed, names)
        return names

    def executables(self, directory: str) -> list[str]:
        """Return the names of the executable files in `directory`; whether they are is asked each time."""
        return [name for name in self.names(directory) if is_program(os.path.join(directory, name))]

    def directories(self, directory: str) -> list[str]:
        """Return the paths of the directories in `directory`."""
        paths = (os.path.join(directory, name) for name in self.names(directory))
        return [path for path in paths if self.is_directory(path)]

    def is_directory(self, path: str) -> bool:
        """Return whether `path` is a directory, asked each time."""
        return os.path.isdir(path)


def is_program(path: str) -> bool:
    """Return whether `path` is a regular file that may be executed."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)
    except OSError:
        return False

"""Count the tasks of a session from the log of an agent that follows the prose: it writes nothing else."""

from __future__ import annotations

import os

from harness_lib.system.files import nofollow
from harness_lib.system.place import find_root

# A session has few lines, and the log may have grown to gigabytes.
_TAIL = 200_000


def attempted(root: str, session: int) -> int:
    """Return how many tasks `session` has completed or failed, by the last lines of the log at `root`."""
    tag = f"[SESSION-{session}]"
    lines = _tail(os.path.join(root, find_root.LOG_FILE)).splitlines()
    return sum(tag in line and _ends_an_attempt(line) for line in lines)


def _ends_an_attempt(line: str) -> bool:
    # An error without a task is the environment's.
    return " Completed [" in line or (" ERROR [" in line and "[task-" in line)


def _tail(log: str) -> str:
    try:
        with nofollow.reading(log) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _TAIL))
            return stream.read(_TAIL).decode("utf-8", "replace")
    except OSError:
        # Not there, or not to be read: nothing is counted.
        return ""

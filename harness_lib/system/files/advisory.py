"""Take the kernel's lock on an open file (flock), with one of three kinds of waiting.

The lock hangs on the open file: children that inherit its descriptor hold it, too, and the kernel lets go of
it when the last copy is closed, by death as well.
Hooks load this with the log, so it needs what is loaded already, and no more.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

POLL_SECONDS = 0.02


def opened(path: Path) -> int:
    """Return a descriptor of the lock file `path`, made for its owner alone if needed. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def take_now(descriptor: int) -> bool:
    """Take the lock without waiting; return whether it is ours."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        # Some file systems say EACCES of what another has.
        return False
    return True


def let_go(descriptor: int) -> None:
    """Let go of the lock and close `descriptor`."""
    try:
        # A process that is just being started may have a copy, and would hold the lock for that moment.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def take_within(descriptor: int, seconds: float) -> bool:
    """Take the lock, asking again for as long as `seconds`; return whether it is ours."""
    end = time.monotonic() + seconds
    while not take_now(descriptor):
        if time.monotonic() >= end:
            return False
        # A flock that waits cannot be given up.
        time.sleep(POLL_SECONDS)
    return True


def take(descriptor: int) -> None:
    """Take the lock, after everybody who came before us, however long that is."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)

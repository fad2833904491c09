"""Start a program from a thread that nono-py has confined.

The rules of Landlock belong to a thread, and a child begins with those of the thread that starts it. So our
own process stays free, and loads nono-py once. On macOS such rules belong to a process: see `confine.enter`.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from harness_lib.errors import EnvSetupError
from harness_lib.system.processes import confine

Started = TypeVar("Started")
# The lines of `/proc/self/status` that are others where a process is confined.
LIMITS = ("NoNewPrivs:", "Seccomp", "CapBnd:")


class OwnProcessConfinedError(EnvSetupError):
    """Harness itself is confined, and cannot go on."""

    def __init__(self) -> None:
        super().__init__(
            "nono has confined harness itself, and not only the command that it was to start.",
            "Install bubblewrap or nono-py 0.16.0, or go without a sandbox: --sandbox off",
        )


def start(nono_py: Any, grants: Sequence[str], begin: Callable[[], Started], *, closed: bool) -> Started:
    """Call `begin` in a thread that is confined to `grants`; return its result once that thread is gone.

    A program that `begin` starts must do nothing before: it has the limits of that thread, and so could read
    our memory through it. Each of `grants` is R or W before a path; `closed`: without a network.
    Raises what `begin` raises, EnvSetupError if nono confines nothing, OwnProcessConfinedError, and OSError.
    """
    before, libc = _limits(), confine.libc_of_root()
    started: list[Started] = []
    failed: list[BaseException] = []

    def confined() -> None:
        # Nothing is imported here: the file might not be readable.
        try:
            _confine(nono_py, grants, libc, closed=closed)
            started.append(begin())
        except BaseException as error:  # noqa: BLE001 (raised in the thread of the caller)
            failed.append(error)

    thread = threading.Thread(target=confined)
    try:
        thread.start()
    except RuntimeError as full:
        # As it is for a process for which the system has no room.
        raise BlockingIOError(errno.EAGAIN, str(full)) from full
    thread.join()
    # It is in the kernel for a moment longer.
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        time.sleep(0.0001)
    if _limits() != before:
        raise OwnProcessConfinedError
    for error in failed:
        raise error
    return started[0]


def _confine(nono_py: Any, grants: Sequence[str], libc: Any, *, closed: bool) -> None:
    try:
        confine.apply(nono_py, grants, closed=closed)
    except (RuntimeError, ValueError) as error:
        raise EnvSetupError(str(error)) from error
    confine.drop_capabilities(libc)
    if _reads_root() and not {"R/", "W/"} & set(grants):
        raise EnvSetupError("nono-py is there, but confines nothing")


def _limits() -> tuple[list[str], bool]:
    """Return what is different where this process is confined."""
    with Path("/proc/self/status").open(encoding="utf-8", errors="replace") as status:
        return [line for line in status if line.startswith(LIMITS)], _reads_root()


def _reads_root() -> bool:
    """Return whether this thread may read the root directory, of which only parts are granted."""
    try:
        os.close(os.open("/", os.O_RDONLY))
    except PermissionError:
        return False
    return True

"""Confine a thread by nono-py, or on macOS a process that loads little, as each command waits for it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # see find_root.py

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MODULE = "_nono_py"
DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"),
    *("/dev/pts", "/dev/shm"),  # noqa: S108
)
# The number of a call of the kernel's, and how many capabilities there may be.
PR_CAPBSET_DROP, CAPABILITIES = 24, 64


def enter() -> None:
    """Confine this process and become a command; the arguments: a file of grants, nono_py, the command."""
    note, package, *command = sys.argv[1:]
    with open(note, encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123
        closed, *grants = stream.read().split("\0")
    os.unlink(note)  # noqa: PTH108
    apply(load(package), grants, closed=bool(closed))
    drop_capabilities(libc_of_root())
    os.execvp(command[0], command)  # noqa: S606


def load(package: str) -> Any:
    """Return the module that implements nono_py: the `package` also loads pydantic, for half a second."""
    sys.path.append(package)
    try:
        # Not by importlib.util, which takes as long to load as that module itself.
        return __import__(MODULE)
    finally:
        sys.path.remove(package)


def libc_of_root() -> Any:
    """Return the C library where there are capabilities of root to drop; None elsewhere."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return None
    import ctypes  # noqa: PLC0415 (only root needs it)

    return ctypes.CDLL(None)


def drop_capabilities(libc: Any) -> None:
    """Let what this thread starts have no capabilities: by one, root reads the memory of all processes."""
    for capability in range(CAPABILITIES) if libc else ():
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def apply(nono_py: Any, grants: Sequence[str], *, closed: bool) -> None:
    """Confine this thread (on macOS this process) to `grants`, each R or W before a path, and to devices.

    What is removed just now is left out.
    """
    left = [*grants, *(f"W{path}" for path in DEVICES)]
    while True:
        try:
            nono_py.apply(_capabilities(nono_py, left, closed=closed))
        except (OSError, RuntimeError, ValueError) as error:
            real = {each: os.path.realpath(each[1:]) for each in left}
            named = [each for each in left if each[1:] in str(error) or real[each] in str(error)]
            if not named:
                raise
            # The others are directories above it.
            left.remove(max(named, key=lambda each: len(real[each])))
        else:
            return


def _capabilities(nono_py: Any, grants: list[str], *, closed: bool) -> Any:
    """Return what the thread may do; each of `grants` is R or W before a path."""
    found = nono_py.CapabilitySet()
    for grant in grants:
        mode = nono_py.AccessMode.READ_WRITE if grant[0] == "W" else nono_py.AccessMode.READ
        # There may be thousands: nono looks at each of them itself.
        try:
            found.allow_path(grant[1:], mode)
        except OSError:
            continue
        except ValueError:
            found.allow_file(grant[1:], mode)
    if closed:
        found.block_network()
    return found

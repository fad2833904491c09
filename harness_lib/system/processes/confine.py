"""Confine this process by nono-py and become a command; as each command waits for it, it loads little."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # see find_root.py

if TYPE_CHECKING:
    from typing import Any

DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"),
    *("/dev/pts", "/dev/shm"),  # noqa: S108
)
# The number of a call of the kernel's, and how many capabilities there may be.
PR_CAPBSET_DROP, CAPABILITIES = 24, 64


def enter() -> None:
    """Confine this process to the grants in the file of the first argument, and run the second argument."""
    nono = _nono_py(sys.path)
    with open(sys.argv[1], encoding="utf-8", errors="surrogateescape") as stream:  # noqa: PTH123
        closed, *grants = stream.read().split("\0")
    os.unlink(sys.argv[1])  # noqa: PTH108
    _apply(nono, [*grants, *(f"W{path}" for path in DEVICES)], closed=bool(closed))
    if sys.platform == "linux" and os.geteuid() == 0:
        # By one of its capabilities root reads the memory of all processes: the next program has none.
        import ctypes  # noqa: PLC0415 (only root needs it)

        libc = ctypes.CDLL(None)
        for capability in range(CAPABILITIES):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.execv("/bin/sh", ["sh", "-c", sys.argv[2]])  # noqa: S606


def _nono_py(path: list[str]) -> Any:
    """Return the module that implements nono_py: the package also loads pydantic, for half a second."""
    package = next(filter(os.path.isdir, (f"{place}/nono_py" for place in path)), None)
    if package is None:
        raise ImportError("nono_py", name="nono_py")
    sys.path.append(package)
    # Not by importlib.util, which takes as long to load as that module itself.
    return __import__("_nono_py")


def _apply(nono_py: Any, grants: list[str], *, closed: bool) -> None:
    """Confine this process to `grants`, leaving out what is removed just now."""
    while True:
        try:
            nono_py.apply(_capabilities(nono_py, grants, closed=closed))
        except (OSError, RuntimeError, ValueError) as error:
            real = {each: os.path.realpath(each[1:]) for each in grants}
            named = [each for each in grants if each[1:] in str(error) or real[each] in str(error)]
            if not named:
                raise
            # The others are directories above it.
            grants.remove(max(named, key=lambda each: len(real[each])))
        else:
            return


def _capabilities(nono_py: Any, grants: list[str], *, closed: bool) -> Any:
    """Return what the process may do; each of `grants` is R or W before a path."""
    found = nono_py.CapabilitySet()
    for grant in grants:
        mode = nono_py.AccessMode.READ_WRITE if grant[0] == "W" else nono_py.AccessMode.READ
        if os.path.isdir(grant[1:]):  # noqa: PTH112
            found.allow_path(grant[1:], mode)
        elif os.path.exists(grant[1:]):  # noqa: PTH110
            found.allow_file(grant[1:], mode)
    if closed:
        found.block_network()
    return found

"""Where our own files live on this machine, and whether others could put code there; in plain strings.

Every hook and the launchers ask this before they import anything that may be cached there; everybody else
asks `private_env`.
Source: docs/design.md, "On the user's machine".
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # see find_root.py

if TYPE_CHECKING:
    from collections.abc import Mapping


def directory(environ: Mapping[str, str]) -> str:
    """Return HARNESS_HOME, else `harness` in the user's data directory; not absolute if there is no home.

    A relative XDG_DATA_HOME is ignored, as its standard demands.
    """
    chosen = environ.get("HARNESS_HOME")
    if chosen:
        return chosen
    shared = environ.get("XDG_DATA_HOME", "")
    if shared.startswith("/"):
        return os.path.join(shared, "harness")
    return os.path.join(os.path.expanduser("~"), ".local", "share", "harness")


def problem(info: os.stat_result) -> str | None:
    """Return why nothing may be executed from the place that `info` (of lstat) describes, or None."""
    if stat.S_ISLNK(info.st_mode):
        return "is a symbolic link"
    if not stat.S_ISDIR(info.st_mode):
        return "is not a directory"
    if info.st_uid != os.geteuid():
        return "belongs to another user"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return None


def byte_code(data: str) -> str:
    """Return where compiled modules go, so that nothing is ever written into the skill folder."""
    return os.path.join(data, "pycache")


def is_safe(data: str) -> bool:
    """Return whether `data` is there, named absolutely, and nobody else can put code into it."""
    try:
        return os.path.isabs(data) and problem(os.lstat(data)) is None
    except OSError:
        return False


def use_byte_code(environ: Mapping[str, str]) -> None:
    """Read and write compiled modules in our own place, if nobody else can put code there."""
    data = directory(environ)
    if is_safe(data):
        sys.pycache_prefix = byte_code(data)
        sys.dont_write_bytecode = False


def make(data: str) -> None:
    """Make `data` for us alone if nothing lies there; where that cannot be done there will be none."""
    if os.path.isabs(data) and not os.path.lexists(data):
        try:
            os.makedirs(data, 0o700)
        except OSError:
            # A home that cannot be written: hooks are slower there, nothing else.
            return


# Around the package: what stands there is ours in a checkout, and others' where it was installed.
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
LAUNCHER = os.path.join(HOME, "bin", "harness")


def launcher() -> str | None:
    """Return the absolute path of `bin/harness`; None if there is none beside the package."""
    return LAUNCHER if os.path.isfile(LAUNCHER) else None

"""Find the data directory of harness and its launcher, and tell whether others could put code there.

In plain strings: every hook and the launchers load this before anything that may be cached there. All others
use `private_env`.
Source: docs/design.md, "On the user's machine".
"""

from __future__ import annotations

import os
import stat
import sys

TYPE_CHECKING = False  # see find_root.py

if TYPE_CHECKING:
    from collections.abc import Mapping

# In the data directory: compiled modules, so that nothing is ever written into the skill folder.
BYTE_CODE = "pycache"
# The HARNESS_HOME that `hs` has set by default, for plugins: no data of `harness` is there.
ASSUMED = "HARNESS_HOME_ASSUMED"


def directory(environ: Mapping[str, str]) -> str:
    """Return the user's HARNESS_HOME, else `harness` in the data directory; not absolute without a home.

    A relative XDG_DATA_HOME is ignored, as its standard requires.
    """
    chosen = environ.get("HARNESS_HOME")
    if chosen and chosen != environ.get(ASSUMED):
        return chosen
    shared = environ.get("XDG_DATA_HOME", "")
    if shared.startswith("/"):
        return os.path.join(shared, "harness")
    if not os.environ.get("HOME"):
        # An empty one would mean the root directory, here and to whatever is started.
        os.environ.pop("HOME", None)
    return os.path.join(os.path.expanduser("~"), ".local", "share", "harness")


def problem(info: os.stat_result) -> str | None:
    """Return why no code may be run from the place that `info` (of lstat) describes, or None."""
    if stat.S_ISLNK(info.st_mode):
        return "is a symbolic link"
    if not stat.S_ISDIR(info.st_mode):
        return "is not a directory"
    if info.st_uid != os.geteuid():
        return "belongs to another user"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written by other users"
    return None


def is_safe(data: str) -> bool:
    """Return whether `data` is an absolute path of a directory that only this user can write."""
    try:
        return os.path.isabs(data) and problem(os.lstat(data)) is None
    except OSError:
        return False


def use_byte_code(environ: Mapping[str, str]) -> None:
    """Read and write compiled modules in the data directory, if only this user can write it."""
    data = directory(environ)
    if is_safe(data):
        sys.pycache_prefix = os.path.join(data, BYTE_CODE)
        sys.dont_write_bytecode = False


def make(data: str) -> None:
    """Make `data` for this user alone unless something is there; a failure is ignored."""
    if os.path.isabs(data) and not os.path.lexists(data):
        try:
            os.makedirs(data, 0o700)
        except OSError:
            # A home that cannot be written only makes hooks slower.
            return


# The directory around the package: harness's own in a checkout, `site-packages` if it was installed.
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
LAUNCHER = os.path.join(HOME, "bin", "harness")


def launcher() -> str | None:
    """Return the absolute path of `bin/harness`; None for an installed package, which has none beside it."""
    return LAUNCHER if os.path.isfile(LAUNCHER) else None

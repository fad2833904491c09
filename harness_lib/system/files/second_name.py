"""Give a file that only grows a second name, so that removing the first loses nothing.

Both are names of one file, so nothing is ever written twice. Where the file system has no such names, or the
place is on another one, there is none, and to remove the file loses what it holds.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from harness_lib.system.files import atomic


def keep(file: Path, second: Path) -> None:
    """Let `second`, whose directory must exist, name `file`, if that is there and no symbolic link."""
    # What a file system, or a sandbox, does not allow is no reason to stop anybody's work.
    with contextlib.suppress(OSError):
        info = os.lstat(file)
        if not stat.S_ISREG(info.st_mode) or _is(second, info):
            return
        # Whoever died here has left it; two at once the lock of the list keeps apart.
        beside = second.with_name(f".{second.name}.tmp")
        atomic.remove(beside)
        os.link(file, beside, follow_symlinks=False)
        beside.replace(second)


def give_back(second: Path, file: Path) -> bool:
    """Let `file`, which is gone, name again what `second` names; return whether it does."""
    try:
        if not stat.S_ISREG(os.lstat(second).st_mode):
            return False
        os.link(second, file, follow_symlinks=False)
    except OSError:
        # Nothing was kept, or it stands again: somebody else was faster.
        return False
    return True


def _is(path: Path, info: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.lstat(path), info)
    except FileNotFoundError:
        return False

"""Rename without replacing: a directory appears under its name with all that is in it, or not at all.

`rename()` replaces an empty directory, and `mkdir()` makes one that is empty for a moment; the call that does
neither has no name in Python.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

# A kernel or a file system that does not know the call.
UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

_HERE = -100  # AT_FDCWD
_NO_REPLACE = 1  # RENAME_NOREPLACE
_EXCLUSIVE = 4  # RENAME_EXCL


def rename(source: Path, target: Path) -> None:
    """Give `source` the name `target`, in the same file system.

    Raises FileExistsError if anything stands at `target`, an OSError of `UNSUPPORTED` where this cannot be
    done in one step, or another OSError.
    """
    # Whoever listens to the effects of this process (the tests do) hears what Python's own rename says.
    sys.audit("os.rename", os.fspath(source), os.fspath(target), -1, -1)
    libc = _libc()
    old, new = os.fsencode(source), os.fsencode(target)
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(old, new, _EXCLUSIVE)
    elif sys.platform.startswith("linux") and hasattr(libc, "renameat2"):
        failed = libc.renameat2(_HERE, old, _HERE, new, _NO_REPLACE)
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), str(source), None, str(target))
    if failed:
        number = _errno()
        raise OSError(number, os.strerror(number), str(source), None, str(target))


def _errno() -> int:
    import ctypes  # noqa: PLC0415 (who only reads needs none of it)

    return ctypes.get_errno()


@cache
def _libc() -> ctypes.CDLL:
    import ctypes  # noqa: PLC0415 (as above)

    return ctypes.CDLL(None, use_errno=True)

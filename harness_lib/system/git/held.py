"""Which lock on a repository this thread holds, so that each git that it starts inherits it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_Key = tuple[str, int, int]
_held: dict[_Key, int] = {}


def descriptors(git_dir: Path) -> tuple[int, ...]:
    """Return the descriptor that a git child of this thread must inherit, if it holds `git_dir`."""
    fd = _held.get(_key(git_dir))
    return () if fd is None else (fd,)


def note(git_dir: Path, fd: int) -> None:
    """Let the git children of this thread inherit `fd` from now on."""
    _held[_key(git_dir)] = fd


def forget(git_dir: Path) -> None:
    """Let them inherit nothing any more."""
    _held.pop(_key(git_dir), None)


def _key(git_dir: Path) -> _Key:
    # With the process: a fork inherits this table, but not the right to move anything.
    return str(git_dir), os.getpid(), threading.get_ident()

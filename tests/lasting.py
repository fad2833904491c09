"""Directories that all tests of a process use, such as repositories to copy."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

# Asked when tests are loaded: a test may have a TMPDIR of its own, and tempfile keeps to the first answer.
_TEMPORARY = tempfile.gettempdir()


def directory() -> Path:
    """Return a new directory, which is removed when this process ends, and not when a fork of it does."""
    place = Path(tempfile.mkdtemp(prefix="harness-tests-", dir=_TEMPORARY))
    atexit.register(_remove, place, os.getpid())
    return place


def _remove(place: Path, maker: int) -> None:
    if os.getpid() == maker:
        shutil.rmtree(place)

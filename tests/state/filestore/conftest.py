"""Who else is there while a list is changed: an agent's process, and the directory that locks others out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.system import mkdir_lock
from harness_lib.system.place.roots import Root


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that lives as long as the test: the agent a session belongs to."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        yield process


@pytest.fixture
def directory(root: Root) -> Iterator[Path]:
    """Return where the lock directory is, which lies outside the test's own one, and remove it afterwards."""
    path = mkdir_lock.path_for(root.path)
    yield path
    if path.is_symlink():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)

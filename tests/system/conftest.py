"""A repository and a lock for the tests of this folder."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.system.mkdir_lock import SeedLock
from tests.system.git.gitrepo import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path / "repo")


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[SeedLock]:
    lock = SeedLock(tmp_path)
    yield lock
    for left in lock.path.parent.glob(f"{lock.path.name}*"):
        shutil.rmtree(left)

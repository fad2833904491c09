"""A repository for the tests of this folder, and how a repository looks that was taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.gitrepo import World, sh


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path / "repo")


def stands_at_base(world: World) -> None:
    assert world.git.head() == world.base
    assert world.git.branch() == world.branch
    assert world.git.changes(world.keep_out).tracked == ()
    assert sh(world.top, "diff", "--cached", "--name-only", world.base) == ""
    assert not list(world.git.git_dir.glob("harness-scratch*"))

"""A branch that is behind what it is to hold, and the move that brings it there."""

from __future__ import annotations

from harness_lib.system.git import advance, locks
from tests.system.git.gitrepo import World


def commit_ahead(world: World) -> str:
    """Return a commit on the base that adds, changes, and removes, while HEAD stays at the base."""
    world.put("new/file", "new\n")
    world.put("tracked.txt", "changed\n")
    world.put("script", "#!/bin/sh\n", executable=True)
    (world.top / "dir/inner.txt").unlink()
    ahead = world.commits("ahead")
    world.sh("reset", "-q", "--hard", world.base)
    return ahead


def forward(world: World, new: str) -> None:
    with locks.hold(world.git):
        advance.forward(world.git, world.base, new)


def taken_back(world: World) -> None:
    with locks.hold(world.git):
        advance.take_back(world.git)
    assert not advance.is_half_done(world.git)


def left_behind(world: World) -> str:
    """Return where the branch has gone without index and files, which stand at the base."""
    ahead = commit_ahead(world)
    world.sh("update-ref", "HEAD", ahead)
    return ahead


def catch_up(world: World, head: str) -> bool:
    with locks.hold(world.git):
        return advance.catch_up(world.git, world.base, head)

"""What advance.py promises: a checked-out branch moves forward, and nothing of a person's is written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system import advance, gitlocks
from harness_lib.system.restore import HeadMovedError
from tests.system.gitrepo import World, put, sh


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path / "repo")


def _ahead(world: World) -> str:
    """Return a commit on the base that adds, changes, and removes, while HEAD stays at the base."""
    put(world.top / "new" / "file", "new\n")
    put(world.top / "tracked.txt", "changed\n")
    put(world.top / "script", "#!/bin/sh\n")
    (world.top / "script").chmod(0o755)
    sh(world.top, "add", "-A")
    sh(world.top, "commit", "-q", "-m", "ahead")
    ahead = sh(world.top, "rev-parse", "HEAD")
    sh(world.top, "reset", "-q", "--hard", world.base)
    return ahead


def _forward(world: World, new: str) -> None:
    with gitlocks.hold(world.git):
        advance.forward(world.git, world.base, new)


def test_files_index_and_branch_go_forward(world: World) -> None:
    ahead = _ahead(world)

    assert advance.obstacles(world.git, world.base, ahead) == []
    _forward(world, ahead)

    assert sh(world.top, "rev-parse", "main") == ahead
    assert world.git.branch() == "refs/heads/main"
    assert world.status() == ""
    assert (world.top / "new" / "file").read_text() == "new\n"


def test_going_back_over_it_removes_what_it_added(world: World) -> None:
    ahead = _ahead(world)
    _forward(world, ahead)

    with gitlocks.hold(world.git):
        advance.forward(world.git, ahead, world.base)

    assert world.status() == ""
    assert not (world.top / "new").exists()


@pytest.mark.parametrize("done", ["new/file", "tracked.txt", "script"])
def test_killed_between_two_files_it_goes_on(world: World, done: str) -> None:
    ahead = _ahead(world)
    put(world.top / done, sh(world.top, "show", f"{ahead}:{done}") + "\n")
    if done == "script":
        (world.top / done).chmod(0o755)

    assert advance.obstacles(world.git, world.base, ahead) == []
    _forward(world, ahead)

    assert world.status() == ""


def test_a_persons_files_are_named_and_left_alone(world: World) -> None:
    ahead = _ahead(world)
    put(world.top / "new" / "file", "a person's own\n")
    put(world.top / "tracked.txt", "a person's edit\n")
    (world.top / "script").mkdir()

    assert set(advance.obstacles(world.git, world.base, ahead)) == {"new/file", "tracked.txt", "script"}

    _forward(world, ahead)
    assert (world.top / "new" / "file").read_text() == "a person's own\n"
    assert (world.top / "tracked.txt").read_text() == "a person's edit\n"


def test_files_that_are_none_of_its_business_stay(world: World) -> None:
    ahead = _ahead(world)
    put(world.top / "mine", "untracked\n")

    _forward(world, ahead)

    assert world.status() == "?? mine"


def test_line_endings_of_a_checkout_are_no_obstacle(world: World) -> None:
    put(world.top / ".gitattributes", "*.crlf text eol=crlf\n")
    put(world.top / "a.crlf", "one\r\n")
    sh(world.top, "add", "-A")
    sh(world.top, "commit", "-q", "-m", "crlf")
    base = sh(world.top, "rev-parse", "HEAD")
    put(world.top / "a.crlf", "two\r\n")
    sh(world.top, "commit", "-qam", "two")
    ahead = sh(world.top, "rev-parse", "HEAD")
    sh(world.top, "reset", "-q", "--hard", base)

    assert advance.obstacles(world.git, base, ahead) == []
    with gitlocks.hold(world.git):
        advance.forward(world.git, base, ahead)

    assert world.status() == ""
    assert (world.top / "a.crlf").read_bytes() == b"two\r\n"


def test_a_head_that_somebody_moved_is_left(world: World) -> None:
    ahead = _ahead(world)
    sh(world.top, "commit", "-q", "--allow-empty", "-m", "a person's")

    with pytest.raises(HeadMovedError):
        _forward(world, ahead)

    assert world.status() == ""
    assert not (world.top / "new").exists()

"""What advance.py promises: a checked-out branch moves forward, and nothing of a person's is written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system.files import atomic
from harness_lib.system.git import fast_forward, locks
from harness_lib.system.git.restore import HeadMovedError
from tests.system.git.forwards import catch_up, commit_ahead, forward, left_behind
from tests.system.git.gitrepo import World, disk, put, sh


def test_files_index_and_branch_go_forward(world: World) -> None:
    ahead = commit_ahead(world)

    assert fast_forward.obstacles(world.git, world.base, ahead) == []
    forward(world, ahead)

    assert sh(world.top, "rev-parse", "main") == ahead
    assert world.git.branch() == "refs/heads/main"
    assert world.status() == ""
    assert (world.top / "new" / "file").read_text() == "new\n"


def test_going_back_over_it_removes_what_it_added(world: World) -> None:
    ahead = commit_ahead(world)
    forward(world, ahead)

    with locks.hold(world.git):
        fast_forward.forward(world.git, ahead, world.base)

    assert world.status() == ""
    assert not (world.top / "new").exists()


def test_what_was_left_behind_its_branch_comes_after(world: World) -> None:
    ahead = left_behind(world)

    assert catch_up(world, ahead)

    assert world.status() == ""
    assert (world.top / "new" / "file").read_text() == "new\n"
    assert sh(world.top, "reflog", "-1", "--format=%H %gs", "HEAD") == f"{ahead} harness: merge"


@pytest.mark.parametrize("staged", [False, True])
def test_where_a_person_has_written_nothing_comes_after(world: World, staged: bool) -> None:
    ahead = left_behind(world)
    put(world.top / "tracked.txt", "a person's edit\n")
    if staged:
        sh(world.top, "add", "tracked.txt")
    before, status = disk(world.top), world.status()

    assert not catch_up(world, ahead)

    assert disk(world.top) == before
    assert world.status() == status


def test_where_another_ref_must_not_be_nothing_is_left_changed(world: World) -> None:
    ahead = commit_ahead(world)
    before = disk(world.top)
    sh(world.top, "update-ref", "refs/heads/harness/main", world.base)

    with pytest.raises(HeadMovedError), locks.hold(world.git):
        fast_forward.forward(world.git, world.base, ahead, only_while=("refs/heads/harness/main", ""))

    assert disk(world.top) == before
    assert world.status() == ""
    assert world.git.head() == world.base
    assert not fast_forward.is_half_done(world.git)


def test_a_persons_files_are_named_and_left_alone(world: World) -> None:
    ahead = commit_ahead(world)
    put(world.top / "new" / "file", "a person's own\n")
    put(world.top / "tracked.txt", "a person's edit\n")
    (world.top / "script").mkdir()

    assert set(fast_forward.obstacles(world.git, world.base, ahead)) == {"new/file", "tracked.txt", "script"}

    forward(world, ahead)
    assert (world.top / "new" / "file").read_text() == "a person's own\n"
    assert (world.top / "tracked.txt").read_text() == "a person's edit\n"


@pytest.mark.parametrize("name", ["tracked.txt", "dir/inner.txt", "new/file"])
def test_what_a_person_writes_while_it_goes_on_is_not_written_over(world: World, name: str) -> None:
    ahead = commit_ahead(world)
    journal = atomic.write

    def and_a_person_saves(path: Path, data: bytes) -> None:
        journal(path, data)
        put(world.top / name, "a person's edit\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atomic, "write", and_a_person_saves)
        forward(world, ahead)

    assert (world.top / name).read_text() == "a person's edit\n"
    assert world.git.head() == ahead


def test_files_that_are_none_of_its_business_stay(world: World) -> None:
    ahead = commit_ahead(world)
    put(world.top / "mine", "untracked\n")

    forward(world, ahead)

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

    assert fast_forward.obstacles(world.git, base, ahead) == []
    with locks.hold(world.git):
        fast_forward.forward(world.git, base, ahead)

    assert world.status() == ""
    assert (world.top / "a.crlf").read_bytes() == b"two\r\n"


def test_a_head_that_somebody_moved_is_left(world: World) -> None:
    ahead = commit_ahead(world)
    sh(world.top, "commit", "-q", "--allow-empty", "-m", "a person's")

    with pytest.raises(HeadMovedError):
        forward(world, ahead)

    assert world.status() == ""
    assert not (world.top / "new").exists()


def test_what_a_sparse_checkout_leaves_out_stays_out_and_is_no_obstacle(world: World) -> None:
    ahead = commit_ahead(world)
    sh(world.top, "sparse-checkout", "set", "new")
    assert not (world.top / "dir").exists()

    assert fast_forward.obstacles(world.git, world.base, ahead) == []
    forward(world, ahead)

    assert world.status() == ""
    assert not (world.top / "dir").exists()
    assert (world.top / "new" / "file").read_text() == "new\n"

"""What restore.py promises: everything stands as it stood at the base, whatever a check or an attempt did."""

from __future__ import annotations

from pathlib import Path

from harness_lib.system.git import locks, restore
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import NASTY, World, disk, put, sh, stands_at_base

# -- undo_tracked -----------------------------------------------------------------------------------------


def test_undo_gives_tracked_files_back_and_leaves_the_rest(world: World) -> None:
    for name in NASTY:
        put(world.top / "n" / name, "x")
    put(world.top / "state", "old")
    put(world.top / "same", "same")
    world.commit()
    inode = (world.top / "same").stat().st_ino
    for name in NASTY:
        put(world.top / "n" / name, "changed by the check")
    (world.top / "tracked.txt").unlink()
    (world.top / "dir/inner.txt").unlink()
    (world.top / "dir/inner.txt").symlink_to("../same")
    put(world.top / "state", "new")
    put(world.top / "untracked", "x")
    undone = restore.undo_tracked(world.git, world.base, ("state",))
    assert set(undone) == {*(f"n/{name}" for name in NASTY), "tracked.txt", "dir/inner.txt"}
    assert set(world.status().splitlines()) == {"M state", "?? untracked"}
    assert (world.top / "same").stat().st_ino == inode
    assert restore.undo_tracked(world.git, world.base, ("state",)) == ()


def test_undo_leaves_a_directory_that_stands_in_the_way(world: World) -> None:
    (world.top / "tracked.txt").unlink()
    put(world.top / "tracked.txt/by a person", "x")
    assert restore.undo_tracked(world.git, world.base) == ()
    assert (world.top / "tracked.txt/by a person").read_text() == "x"


# -- go_back ----------------------------------------------------------------------------------------------


def test_everything_an_attempt_did_is_taken_back_and_what_was_there_before_is_there_again(
    world: World,
) -> None:
    for name in NASTY:
        put(world.top / "t" / name, "tracked")
    put(world.top / "program", "x", executable=True)
    (world.top / "link").symlink_to("tracked.txt")
    world.commit()
    for name in NASTY:
        put(world.top / "b" / name, b"before\r\n")
    put(world.top / "notes/mine", "mine")
    (world.top / "notes/link").symlink_to("./mine")
    world.begin()
    at_first = disk(world.top)
    for name in NASTY:
        put(world.top / "t" / name, "changed")
        put(world.top / "b" / name, "changed")
        put(world.top / "made" / name / "deep", "made")
    (world.top / "program").chmod(0o644)
    (world.top / "link").unlink()
    put(world.top / "link/now a directory", "x")
    sh(world.top, "add", "-A")
    sh(world.top, "commit", "-q", "-m", "the attempt's own commit")
    (world.top / "notes/mine").unlink()
    (world.top / "notes/link").unlink()
    (world.top / "notes").rmdir()
    put(world.top / "notes", "now a file")
    put(world.top / "staged", "x")
    sh(world.top, "add", "staged")
    put(world.top / "dir/inner.txt", "edited")
    assert world.go_back() == []
    assert disk(world.top) == at_first
    assert not (world.top / "made").exists()
    stands_at_base(world)
    assert world.go_back() == []
    assert disk(world.top) == at_first


def test_unchanged_files_are_not_rewritten(world: World) -> None:
    put(world.top / "mine", "x")
    world.begin()
    before = {name: (world.top / name).stat() for name in ("tracked.txt", "mine")}
    put(world.top / "dir/inner.txt", "changed")
    assert world.go_back() == []
    after = {name: (world.top / name).stat() for name in before}
    assert {n: (s.st_ino, s.st_mtime_ns) for n, s in before.items()} == {
        n: (s.st_ino, s.st_mtime_ns) for n, s in after.items()
    }


def test_a_private_file_from_before_does_not_become_readable_for_others(world: World) -> None:
    for name in ("key", "gone key"):
        put(world.top / name, "secret").chmod(0o600)
    put(world.top / "tool", "x").chmod(0o700)
    world.begin()
    put(world.top / "key", "changed")
    (world.top / "gone key").unlink()
    (world.top / "tool").unlink()
    assert world.go_back() == []
    modes = [(world.top / name).stat().st_mode & 0o777 for name in ("key", "gone key", "tool")]
    assert modes == [0o600, 0o600, 0o700]


def test_line_endings_and_attributes_of_the_base_hold_again(world: World) -> None:
    put(world.top / "crlf.txt", "a\r\nb\r\n")
    put(world.top / "plain.txt", "a\nb\n")
    put(world.top / ".gitattributes", "crlf.txt text eol=crlf\n")
    world.commit()
    world.begin()
    at_first = disk(world.top)
    put(world.top / ".gitattributes", "*.txt text eol=crlf\n")
    put(world.top / "dir/.gitattributes", "* text eol=crlf\n")
    for name in ("crlf.txt", "plain.txt", "dir/inner.txt"):
        put(world.top / name, "changed\n")
    assert world.go_back() == []
    assert disk(world.top) == at_first
    stands_at_base(world)


def test_git_without_files_at_the_base_goes_back_to_nothing(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    world = World(tmp_path, git, git.head() or "")
    world.begin()
    put(tmp_path / "a/b/c", "x")
    sh(tmp_path, "add", "-A")
    sh(tmp_path, "commit", "-q", "-m", "work")
    assert world.go_back() == []
    assert [path.name for path in tmp_path.iterdir()] == [".git"]
    stands_at_base(world)


def test_read_only_files_and_directories_are_no_obstacle(world: World) -> None:
    put(world.top / "mine/notes", "before")
    world.begin()
    put(world.top / "made/deep/file", "x").chmod(0o400)
    put(world.top / "dir/inner.txt", "changed").chmod(0o400)
    put(world.top / "mine/notes", "changed")
    for name in ("made/deep", "made", "dir", "mine"):
        (world.top / name).chmod(0o500)
    try:
        assert world.go_back() == []
        assert not (world.top / "made").exists()
        assert (world.top / "mine/notes").read_text() == "before"
        assert (world.top / "dir/inner.txt").read_text() == "inner\n"
        assert (world.top / "dir").stat().st_mode & 0o777 == 0o500
    finally:
        for name in ("dir", "mine"):
            (world.top / name).chmod(0o700)


def test_hooks_and_watchers_of_the_repository_are_not_run(world: World) -> None:
    world.begin()
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        put(world.top / ".git/hooks" / hook, f"#!/bin/sh\ntouch '{world.top}/ran'\nexit 1\n", executable=True)
    sh(world.top, "config", "core.fsmonitor", f"{world.top}/.git/hooks/post-checkout")
    put(world.top / "tracked.txt", "changed")
    assert world.go_back() == []
    assert not (world.top / "ran").exists()


def test_many_files_from_before_come_back(world: World) -> None:
    for n in range(200):
        put(world.top / "many" / str(n), f"before {n}")
    world.begin()
    assert world.before is not None
    assert len(world.before.protected) == 200
    at_first = disk(world.top)
    for n in range(200):
        put(world.top / "many" / str(n), f"changed {n}")
    assert world.go_back() == []
    assert disk(world.top) == at_first


def test_going_back_inside_hold_leaves_no_lock_behind(world: World) -> None:
    world.begin()
    put(world.top / "tracked.txt", "changed")
    assert world.go_back() == []
    assert locks.leftover_locks(world.git) == []

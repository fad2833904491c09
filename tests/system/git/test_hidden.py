"""Marks in the index hide nothing: what stands on disk is content, what is left out is no deletion."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system.git import snapshot, status
from tests.system.git.gitrepo import World, content, disk, put, sh

MARKS = ("--assume-unchanged", "--skip-worktree")


@pytest.mark.parametrize("mark", MARKS)
def test_a_marked_file_that_changed_is_a_change(world: World, mark: str) -> None:
    sh(world.top, "update-index", mark, "tracked.txt")
    assert status.changes(world.git).tracked == ()
    put(world.top / "tracked.txt", "local\n")
    assert sh(world.top, "status", "--short") == ""
    assert status.changes(world.git).tracked == ("tracked.txt",)
    assert sh(world.top, "status", "--short") == ""


@pytest.mark.parametrize("mark", MARKS)
def test_a_capture_has_it_and_leaves_the_mark(world: World, mark: str) -> None:
    sh(world.top, "update-index", mark, "tracked.txt")
    put(world.top / "tracked.txt", "local\n")
    index = (world.top / ".git/index").read_bytes()
    assert content(world.git, snapshot.capture(world.git)) == disk(world.top)
    assert (world.top / ".git/index").read_bytes() == index


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("deleted", [False, True])
def test_going_back_undoes_what_an_attempt_has_marked(world: World, mark: str, *, deleted: bool) -> None:
    world.begin()
    sh(world.top, "update-index", mark, "tracked.txt")
    if deleted:
        (world.top / "tracked.txt").unlink()
    else:
        put(world.top / "tracked.txt", "weakened\n")
    assert world.go_back() == []
    assert (world.top / "tracked.txt").read_text() == "one\n"


def _sparse(tmp_path: Path) -> World:
    world = World.make(tmp_path / "sparse", {"in/a": "a\n", "out/b": "b\n", "top": "t\n"})
    sh(world.top, "sparse-checkout", "set", "in")
    assert not (world.top / "out").exists()
    world.begin()
    return world


def test_what_a_sparse_checkout_leaves_out_is_no_change(tmp_path: Path) -> None:
    world = _sparse(tmp_path)
    assert status.changes(world.git) == type(status.changes(world.git))()
    for before in (None, world.before):
        tree = snapshot.capture(world.git, base=world.base, before=before)
        assert tree == world.git.tree_of("HEAD")


def test_what_an_attempt_makes_out_there_is_captured_and_goes_with_it(tmp_path: Path) -> None:
    world = _sparse(tmp_path)
    put(world.top / "out/b", "changed\n")
    put(world.top / "out/new", "new\n")
    put(world.top / "in/a", "changed\n")
    tree = snapshot.capture(world.git, base=world.base, before=world.before)
    assert content(world.git, tree) == disk(world.top)
    assert world.go_back() == []
    assert disk(world.top) == {"in/a": ("file", b"a\n"), "top": ("file", b"t\n"), "out/b": ("file", b"b\n")}


def test_a_file_that_an_attempt_leaves_out_of_the_checkout_comes_back(world: World) -> None:
    world.begin()
    sh(world.top, "sparse-checkout", "set", "dir")
    assert not (world.top / "other").exists()
    sh(world.top, "sparse-checkout", "disable")
    put(world.top / "out/b", "b\n")
    world.commit()
    put(world.top / "mine", "untracked\n")
    world.begin()
    sh(world.top, "sparse-checkout", "set", "dir")
    assert not (world.top / "out/b").exists()
    assert world.go_back() == []
    assert (world.top / "out/b").read_text() == "b\n"

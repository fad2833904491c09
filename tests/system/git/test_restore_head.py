"""Going back finds home from any branch, operation or work tree, and loses no commit, branch or stash."""

from __future__ import annotations

import pytest

from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, conflict, put, sh, stands_at_base


def test_head_comes_back_from_another_branch_whose_commits_stay(world: World) -> None:
    world.begin()
    sh(world.top, "checkout", "-q", "-b", "side")
    put(world.top / "made", "x")
    sh(world.top, "add", "-A")
    sh(world.top, "commit", "-q", "-m", "on the side")
    side = sh(world.top, "rev-parse", "HEAD")
    assert world.go_back() == []
    stands_at_base(world)
    assert sh(world.top, "rev-parse", "side") == side


@pytest.mark.parametrize("how", ["detached", "orphan", "branch deleted"])
def test_head_comes_back_from_anywhere(world: World, how: str) -> None:
    world.begin()
    if how == "orphan":
        sh(world.top, "checkout", "-q", "--orphan", "new")
    else:
        sh(world.top, "checkout", "-q", "--detach")
    if how == "branch deleted":
        sh(world.top, "branch", "-q", "-D", "main")
    put(world.top / "made", "x")
    assert world.go_back() == []
    stands_at_base(world)


def test_a_detached_head_comes_back_detached_and_no_branch_moves(world: World) -> None:
    sh(world.top, "checkout", "-q", "--detach")
    world.begin()
    sh(world.top, "checkout", "-q", "-b", "side")
    put(world.top / "made", "x")
    sh(world.top, "add", "-A")
    sh(world.top, "commit", "-q", "-m", "on the side")
    side = world.git.head()
    assert world.go_back() == []
    stands_at_base(world)
    assert sh(world.top, "rev-parse", "side") == side
    assert sh(world.top, "rev-parse", "main") == world.base


@pytest.mark.parametrize("how", ["merge", "rebase", "cherry-pick"])
def test_an_operation_that_stopped_with_conflicts_is_ended(world: World, how: str) -> None:
    conflict(world)
    world.begin()
    put(world.top / "mine", "x")
    world.begin()
    sh(world.top, how, "theirs", check=False)
    assert world.git.under_way() == how
    assert world.go_back() == []
    assert world.git.under_way() is None
    assert (world.top / "mine").read_text() == "x"
    stands_at_base(world)
    assert world.status() == "?? mine"


def test_a_stash_that_git_made_for_a_rebase_is_kept(world: World) -> None:
    conflict(world)
    world.begin()
    put(world.top / "dir/inner.txt", "in progress\n")
    sh(world.top, "rebase", "--autostash", "theirs", check=False)
    assert world.go_back() == []
    assert len(world.git.stash_list()) == 1
    stands_at_base(world)


def test_a_linked_worktree_goes_back_and_the_main_one_stays(world: World) -> None:
    linked = world.top.parent / "linked"
    sh(world.top, "worktree", "add", "-q", "-b", "side", str(linked))
    side = World(linked, Git.open(linked), world.base)
    side.begin()
    put(linked / "made", "x")
    put(linked / "tracked.txt", "changed")
    sh(linked, "commit", "-q", "-a", "-m", "work")
    put(world.top / "tracked.txt", "edited in the main work tree\n")
    assert side.go_back() == []
    stands_at_base(side)
    assert not (linked / "made").exists()
    assert (world.top / "tracked.txt").read_text() == "edited in the main work tree\n"


def test_a_sparse_checkout_stays_sparse(world: World) -> None:
    put(world.top / "other/file", "x")
    world.commit()
    sh(world.top, "sparse-checkout", "set", "dir")
    world.begin()
    put(world.top / "dir/inner.txt", "changed")
    put(world.top / "dir/made", "x")
    sh(world.top, "add", "-A")
    sh(world.top, "commit", "-q", "-m", "work")
    assert world.go_back() == []
    assert not (world.top / "other").exists()
    stands_at_base(world)

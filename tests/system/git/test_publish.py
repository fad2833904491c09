"""advance.move_head_and_index moves the branch and the index; no file moves, and nobody is overtaken."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system.git import advance, snapshot, status, trees
from harness_lib.system.git.advance import HeadMovedError
from harness_lib.system.git.calls import GitError
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, conflict, put, sh


def _published(world: World) -> str:
    world.put("new", "x")
    tree = snapshot.capture(world.git)
    return world.git.commit(tree, [world.base], "work")


def test_publish_moves_the_branch_and_the_index_and_no_file(world: World) -> None:
    commit = _published(world)
    world.put("tracked.txt", "edited since\n")
    advance.move_head_and_index(world.git, commit, world.base)
    assert world.sh("rev-parse", "main") == commit
    assert world.status() == "M tracked.txt"
    assert "harness: commit" in world.sh("reflog", "-1")
    advance.move_head_and_index(world.git, commit, world.base)
    assert world.status() == "M tracked.txt"


def test_publish_on_a_detached_head_moves_head_alone(world: World) -> None:
    world.sh("checkout", "-q", "--detach")
    commit = _published(world)
    advance.move_head_and_index(world.git, commit, world.base)
    assert world.git.head() == commit
    assert world.sh("rev-parse", "main") == world.base


def test_publish_makes_the_first_commit(tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "-b", "main")
    git = Git.open(tmp_path)
    put(tmp_path / "new", "x")
    commit = git.commit(snapshot.capture(git), [], "first")
    advance.move_head_and_index(git, commit, None)
    assert git.head() == commit
    assert status.changes(git) == status.changes(git).__class__()


def test_publish_refuses_when_somebody_else_moved_head(world: World) -> None:
    commit, base = _published(world), world.base
    world.sh("commit", "-q", "--allow-empty", "-m", "somebody else")
    with pytest.raises(HeadMovedError):
        advance.move_head_and_index(world.git, commit, base)
    assert "somebody else" in world.git.message("HEAD")


def test_publish_settles_an_index_with_conflicts_and_keeps_what_is_untracked(world: World) -> None:
    conflict(world)
    world.sh("merge", "theirs", check=False)
    world.put("tracked.txt", "settled\n")
    world.put("loose", "x")
    tree = trees.without(world.git, snapshot.capture(world.git), ["loose"])
    commit = world.git.commit(tree, [world.base, *world.git.merge_heads()], "merged")
    advance.move_head_and_index(world.git, commit, world.base)
    world.git.quit_under_way()
    assert world.status() == "?? loose"


def test_a_foreign_lock_is_waited_for_and_then_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advance, "PATIENCE_SECONDS", 0.1)
    commit = _published(world)
    world.put(".git/index.lock", "")
    with pytest.raises(GitError, match=r"index\.lock"):
        advance.move_head_and_index(world.git, commit, world.base)
    (world.top / ".git/index.lock").unlink()
    advance.move_head_and_index(world.git, commit, world.base)
    assert world.status() == ""

"""HEAD, its branch and index move to a commit: no file moves, nobody is overtaken, what differs is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system.git import advance, snapshot, status, trees
from harness_lib.system.git.advance import HeadMovedError
from harness_lib.system.git.calls import GitError
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, conflict, put, sh

NAMES = ("with space", "-dash", "new\nline", 'quote"', "ünï", "H h", "C c")


def _touch(top: Path) -> None:
    os.utime(top / "C c", (1, 1))


def _link(top: Path) -> None:
    (top / "C c").unlink()
    (top / "C c").symlink_to("with space")


WAYS: dict[str, Callable[[Path], object]] = {
    "nothing": Path.exists,
    "edited": lambda top: put(top / "new\nline", "edited"),
    "deleted": lambda top: (top / "-dash").unlink(),
    "executable": lambda top: (top / "ünï").chmod(0o755),
    "another type": _link,
    "only touched": _touch,
    "untracked": lambda top: put(top / "sub/untracked", "x"),
    "assumed": lambda top: (sh(top, "update-index", "--assume-unchanged", "H h"), put(top / "H h", "edited")),
    "skipped": lambda top: (sh(top, "update-index", "--skip-worktree", "H h"), put(top / "H h", "edited")),
    "marked alone": lambda top: sh(top, "update-index", "--skip-worktree", "H h"),
}


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
    assert status.changes(git) == ((), ())


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
    commit = world.git.commit(tree, [world.base, *status.merge_heads(world.git)], "merged")
    advance.move_head_and_index(world.git, commit, world.base)
    status.quit_under_way(world.git)
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


@pytest.mark.parametrize("way", WAYS)
def test_it_names_what_differs_on_disk_and_who_resets_the_index_is_told_of_it(world: World, way: str) -> None:
    for name in NAMES:
        world.put(name, "as committed")
    world.commit()
    WAYS[way](world.top)
    shown = world.status()
    differing = status.changes(world.git).tracked
    assert world.status() == shown, "a mark stays as it was"
    assert len(differing) == (way not in {"nothing", "only touched", "untracked", "marked alone"})
    assert status.changes(world.git, differing).tracked == ()
    world.sh("config", "reset.quiet", "true")
    assert advance.reset_index(world.git, "HEAD") == (way in {"nothing", "only touched", "untracked"})


def test_a_file_that_was_changed_in_the_same_instant_is_told_of(world: World) -> None:
    world.commit(files={"tracked.txt": "one\n"})
    info = (world.top / ".git/index").stat()
    world.put("tracked.txt", "two\n")
    for path in (world.top / "tracked.txt", world.top / ".git/index"):
        os.utime(path, ns=(info.st_mtime_ns, info.st_mtime_ns))
    assert not advance.reset_index(world.git, "HEAD")


def test_an_index_that_was_reset_knows_its_files_and_no_ref_has_moved(world: World) -> None:
    world.commits("second", files={"added": "x", "tracked.txt": "two\n"})
    world.put("intended", "x")
    world.sh("add", "-N", "intended")
    os.utime(world.top / "tracked.txt", (1, 1))
    reflog = world.sh("reflog")
    advance.reset_index(world.git, "HEAD")
    # Plumbing believes the index, and looks into no file.
    assert world.sh("diff-index", "--name-only", "HEAD") == ""
    assert world.status() == "?? intended"
    assert world.sh("reflog") == reflog
    assert not (world.top / ".git/ORIG_HEAD").exists()


def test_an_index_is_reset_whatever_the_user_has_set(world: World) -> None:
    world.sh("config", "reset.quiet", "true")
    world.sh("rm", "-q", "--cached", "tracked.txt")
    advance.reset_index(world.git, "HEAD")
    assert world.status() == ""
    assert world.sh("diff-files", "--name-only") == ""

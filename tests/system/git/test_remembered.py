"""An answer of git is used again only as long as it is right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.system.git import hidden, submodules, worktrees
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, put, sh

if TYPE_CHECKING:
    import pytest


def test_marks_are_seen_that_somebody_sets_and_takes_back(world: World) -> None:
    assert hidden.marked(world.git) == ()
    for _ in range(2):
        sh(world.top, "update-index", "--assume-unchanged", "tracked.txt")
        assert hidden.marked(world.git) == ("tracked.txt",)
        sh(world.top, "update-index", "--no-assume-unchanged", "tracked.txt")
        assert hidden.marked(world.git) == ()


def test_an_index_without_a_checksum_is_asked_about_each_time(world: World) -> None:
    # An older git knows nothing of it and makes a checksum, which is as well.
    sh(world.top, "config", "index.skipHash", "true")
    put(world.top / "new.txt", "x")
    sh(world.top, "add", "new.txt")
    assert hidden.marked(world.git) == ()
    sh(world.top, "update-index", "--skip-worktree", "new.txt")
    assert hidden.marked(world.git) == ("new.txt",)


def test_a_repository_without_an_index_is_asked_about_once_until_it_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = tmp_path / "bare of files"
    top.mkdir()
    sh(top, "init", "--quiet")
    git = Git.open(top)
    file = put(top / "new.txt", "x")
    assert (hidden.marked(git), git.is_tracked(file)) == ((), False)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path / "nothing"))
        assert (hidden.marked(git), git.is_tracked(file)) == ((), False)
    sh(top, "add", "new.txt")
    sh(top, "update-index", "--skip-worktree", "new.txt")
    assert (hidden.marked(git), git.is_tracked(file)) == (("new.txt",), True)


def test_a_name_that_may_come_to_mean_another_tree_is_asked_about_each_time(world: World) -> None:
    before = world.git.tree_of("HEAD")
    put(world.top / "tracked.txt", "changed")
    world.commit()
    assert world.git.tree_of("HEAD") == sh(world.top, "rev-parse", "HEAD^{tree}") != before


def test_settings_are_read_again_when_somebody_has_written_them(world: World) -> None:
    for setting in ("true", "false", "true"):
        sh(world.top, "config", "core.bare", setting)
        assert worktrees.is_bare(world.git) is (setting == "true")


def test_what_cannot_change_is_asked_about_once(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers() -> list[object]:
        head = world.git.head()
        assert head is not None
        of_index = (hidden.marked(world.git), submodules.staged(world.git), worktrees.is_bare(world.git))
        return [world.git.tree_of(head), submodules.links(world.git, head), world.git.empty_tree(), *of_index]

    before = answers()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert answers() == before


def test_a_linked_work_tree_stands_until_something_of_it_is_gone(world: World) -> None:
    linked = worktrees.add(world.git, world.top.parent / "there", str(world.git.head()))
    assert worktrees.stands(linked)
    (linked.top / ".git").write_text("gitdir: elsewhere\n", "ascii")
    assert not worktrees.stands(linked)
    (linked.top / ".git").unlink()
    assert not worktrees.stands(linked)
    assert not worktrees.stands(world.git)

"""What git.py promises about commits, refs and excludes: made on any machine, and nothing written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system.git import snapshot, status
from harness_lib.system.git.repository import Git, GitError
from tests.system.git.gitrepo import World, put, sh


def test_init_makes_a_first_commit_and_leaves_an_existing_one_alone(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    first = git.head()
    assert first
    assert snapshot.entries(git, first) == {}
    assert Git.init(tmp_path).head() == first


def test_a_machine_without_identity_gets_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "config", "[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    git = Git.init(tmp_path)
    assert git.text("log", "-1", "--format=%an %ae") == "harness harness@localhost"


def test_a_half_identity_is_kept_and_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "config", "[user]\n\tuseConfigOnly = true\n\tname = Ada\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    git = Git.init(tmp_path)
    assert git.text("log", "-1", "--format=%an %ae") == "Ada harness@localhost"


def test_an_identity_in_the_environment_wins(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    oid = world.git.commit(world.git.tree_of("HEAD"), [world.base], "m")
    assert world.git.text("log", "-1", "--format=%an", oid) == "Somebody Else"


def test_commits_are_never_signed_and_run_no_hook(world: World) -> None:
    sh(world.top, "config", "commit.gpgSign", "true")
    sh(world.top, "config", "gpg.program", "/nonexistent")
    hook = put(world.top / ".git/hooks/reference-transaction", "#!/bin/sh\nexit 1\n", executable=True)
    oid = world.git.commit(world.git.tree_of("HEAD"), [world.base], "subject\n\nbody ü\n")
    world.git.set_ref("refs/harness/x", oid)
    assert hook.exists()
    assert world.git.message(oid) == "subject\n\nbody ü"


def test_refs_move_only_from_where_they_are_expected(world: World) -> None:
    git, second = world.git, world.git.commit(world.git.tree_of("HEAD"), [world.base], "second")
    git.set_ref("refs/harness/rescue/a/1", world.base, "")
    with pytest.raises(GitError):
        git.set_ref("refs/harness/rescue/a/1", second, "")
    with pytest.raises(GitError):
        git.set_ref("refs/harness/rescue/a/1", second, second)
    git.set_ref("refs/harness/rescue/a/1", second, world.base)
    assert git.refs("refs/harness") == [("refs/harness/rescue/a/1", second)]
    with pytest.raises(GitError):
        git.delete_ref("refs/harness/rescue/a/1", world.base)
    git.delete_ref("refs/harness/rescue/a/1", second)
    assert git.ref("refs/harness/rescue/a/1") is None


def test_a_ref_moves_only_while_another_one_is_where_it_has_to_be(world: World) -> None:
    git, second = world.git, world.git.commit(world.git.tree_of("HEAD"), [world.base], "second")
    moved, other = "refs/harness/moved", "refs/harness/other"
    with pytest.raises(GitError):
        git.set_ref(moved, second, "", only_while=(other, world.base))
    git.set_ref(moved, world.base, "", only_while=(other, ""))
    git.set_ref(other, second)
    with pytest.raises(GitError):
        git.set_ref(moved, second, world.base, only_while=(other, ""))
    with pytest.raises(GitError):
        git.set_ref(moved, second, second, only_while=(other, second))
    assert git.ref(moved) == world.base
    git.set_ref(moved, second, world.base, only_while=(other, second))
    assert git.ref(moved) == second
    git.delete_ref("refs/harness/rescue/a/1")


def test_exclude_adds_each_pattern_once_and_keeps_what_is_there(world: World) -> None:
    exclude = put(world.top / ".git/info/exclude", "# mine\n*.o")
    world.git.exclude(["/.harness/", "*.o"])
    world.git.exclude(["/.harness/", "/log"])
    assert exclude.read_text() == "# mine\n*.o\n/.harness/\n/log\n"


def test_exclude_works_without_an_info_directory_and_reaches_a_linked_worktree(world: World) -> None:
    for file in (world.top / ".git/info").iterdir():
        file.unlink()
    (world.top / ".git/info").rmdir()
    sh(world.top, "worktree", "add", "-q", "-b", "side", str(world.top.parent / "linked"))
    Git.open(world.top.parent / "linked").exclude(["/hidden"])
    put(world.top.parent / "linked/hidden", "x")
    assert status.changes(Git.open(world.top.parent / "linked")).untracked == ()

"""What git.py promises about finding a repository: the right one, or an error that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.system.git.repository import Git, clean_env
from tests.system.git.gitrepo import World, put, sh


def test_clean_env_drops_locations_and_keeps_who_and_how() -> None:
    kept = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_COMMITTER_EMAIL": "c@example.invalid",
        "EMAIL": "e@example.invalid",
        "GIT_SSH_COMMAND": "ssh -v",
        "GIT_CONFIG_GLOBAL": "/x",
        "PATH": "/bin",
    }
    dropped = dict.fromkeys(
        (
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_COMMON_DIR",
            "GIT_NAMESPACE",
            "GIT_PREFIX",
            "GIT_CEILING_DIRECTORIES",
            "GIT_QUARANTINE_PATH",
            "GIT_LITERAL_PATHSPECS",
            "GIT_GLOB_PATHSPECS",
            "GIT_EXTERNAL_DIFF",
            "GIT_CONFIG_PARAMETERS",
        ),
        "x",
    )
    cleaned = clean_env({**kept, **dropped, "LC_ALL": "de_DE.UTF-8"})
    assert {name: cleaned.get(name) for name in kept} == kept
    assert not dropped.keys() & cleaned.keys()
    assert cleaned["LC_ALL"] == "C"
    assert cleaned["GIT_TERMINAL_PROMPT"] == "0"


def test_a_calling_git_cannot_redirect_us(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = World.make(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.top / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.top / ".git/index"))
    assert Git.open(world.top).top == world.top


def test_open_finds_the_top_from_a_subdirectory(world: World) -> None:
    git = Git.open(world.top / "dir")
    assert (git.top, git.git_dir, git.common_dir) == (world.top, world.top / ".git", world.top / ".git")


def test_open_knows_a_linked_worktree(world: World) -> None:
    linked = world.top.parent / "linked"
    sh(world.top, "worktree", "add", "-q", "-b", "side", str(linked))
    git = Git.open(linked)
    assert git.top == linked
    assert git.git_dir == world.top / ".git/worktrees/linked"
    assert git.common_dir == world.top / ".git"
    assert git.branch() == "refs/heads/side"


def test_open_survives_a_line_break_in_the_directory_name(tmp_path: Path) -> None:
    assert World.make(tmp_path / "two\nlines").git.top == tmp_path / "two\nlines"


def test_open_outside_of_a_repository_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(EnvSetupError, match="not in a git repository") as caught:
        Git.open(tmp_path)
    assert "harness init --git" in (caught.value.hint or "")


def test_open_refuses_a_bare_repository_and_a_git_directory(world: World, tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "--bare", "bare")
    for place in (tmp_path / "bare", world.top / ".git"):
        with pytest.raises(EnvSetupError, match="bare"):
            Git.open(place)


def test_open_names_a_directory_that_is_gone_and_a_file(world: World) -> None:
    for place in (world.top / "gone", world.top / "tracked.txt"):
        with pytest.raises(EnvSetupError, match=place.name):
            Git.open(place)


def test_without_git_on_the_path_that_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world.top))
    with pytest.raises(EnvSetupError, match="git is not installed"):
        Git.open(world.top)


def test_a_repository_that_git_does_not_trust_is_reported_with_gits_own_advice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(world.top / ".git/config", b'[core]\n\trepositoryformatversion = 0\n\tbare = "false"\n')
    # git offers this switch to its own tests: every directory counts as somebody else's.
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr("harness_lib.system.git.calls.KEPT", ("GIT_",))
    with pytest.raises(EnvSetupError, match="does not trust") as caught:
        Git.open(world.top)
    assert "safe.directory" in (caught.value.hint or "")

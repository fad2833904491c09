"""What git.py promises about questions to a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.system.git import status
from harness_lib.system.git.calls import covers
from harness_lib.system.git.repository import Git, GitError
from tests.system.git.gitrepo import NASTY, World, conflict, put, sh


def test_a_failing_command_says_which_and_why(world: World) -> None:
    with pytest.raises(GitError, match="cat-file") as caught:
        world.git.run("cat-file", "-p", "nonsense")
    assert caught.value.returncode == 128
    assert caught.value.exit_code == 7
    assert "nonsense" in caught.value.stderr


def test_changes_tells_tracked_from_untracked_whatever_the_names(world: World) -> None:
    for name in NASTY:
        put(world.top / "t" / name, "x")
    world.commit()
    for name in NASTY:
        put(world.top / "t" / name, "changed")
        put(world.top / "u" / name, "new")
    changes = status.changes(world.git)
    assert set(changes.tracked) == {f"t/{name}" for name in NASTY}
    assert set(changes.untracked) == {f"u/{name}" for name in NASTY}


def test_changes_leaves_out_files_and_directories_but_not_their_namesakes(world: World) -> None:
    for name in ("keep", "keep.txt", ".harness/log", ".harness-not/ours", "sub/keep"):
        put(world.top / name, "x")
    put(world.top / "tracked.txt", "changed")
    changes = status.changes(world.git, ("keep", ".harness", "tracked.txt"))
    assert changes.tracked == ()
    assert set(changes.untracked) == {"keep.txt", ".harness-not/ours", "sub/keep"}


def test_changes_ignores_what_git_ignores_and_reports_conflicts_and_renames(world: World) -> None:
    put(world.top / ".git/info/exclude", "*.log\n")
    put(world.top / "a.log", "x")
    sh(world.top, "mv", "tracked.txt", "renamed.txt")
    assert set(status.changes(world.git).tracked) == {"tracked.txt", "renamed.txt"}
    assert status.changes(world.git).untracked == ()


@pytest.mark.parametrize("how", ["merge", "rebase", "cherry-pick", "revert", "am"])
def test_what_is_under_way_is_named_and_can_be_forgotten_without_touching_files(
    world: World, how: str
) -> None:
    conflict(world)
    patch = world.top.parent / "patch"
    patch.write_text(sh(world.top, "format-patch", "-1", "--stdout", "theirs") + "\n")
    arguments = {"am": [str(patch)], "revert": ["--no-edit", "HEAD~1"]}.get(how, ["theirs"])
    sh(world.top, how, *arguments, check=False)
    if how == "revert" and world.git.under_way() is None:
        pytest.skip("this git reverts without a conflict")
    assert world.git.under_way() == how
    assert len(world.git.merge_heads()) == (how == "merge")
    content = (world.top / "tracked.txt").read_bytes()
    head = world.git.head()
    assert world.git.quit_under_way() == how
    assert world.git.under_way() is None
    assert world.git.head() == head
    assert (world.top / "tracked.txt").read_bytes() == content


def test_a_bisect_ends_where_head_stands(world: World) -> None:
    for number in range(4):
        put(world.top / "tracked.txt", f"{number}\n")
        world.commit()
    sh(world.top, "bisect", "start", "HEAD", "HEAD~4")
    head = world.git.head()
    put(world.top / "tracked.txt", "changed\n")
    assert world.git.quit_under_way() == "bisect"
    assert world.git.under_way() is None
    assert world.git.head() == head
    assert (world.top / "tracked.txt").read_text() == "changed\n"


def test_nothing_is_under_way_in_a_quiet_repository(world: World) -> None:
    assert world.git.under_way() is None
    assert world.git.quit_under_way() is None


def test_head_and_branch_before_the_first_commit_and_detached(world: World, tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "-b", "main", "new")
    new = Git.open(tmp_path / "new")
    assert (new.head(), new.branch()) == (None, "refs/heads/main")
    assert new.recent(5) == []
    assert new.commits_since("0" * 40) == ()
    sh(world.top, "checkout", "-q", "--detach")
    assert (world.git.head(), world.git.branch()) == (world.base, None)


def test_exists_is_about_commits_and_object_exists_about_anything(world: World) -> None:
    tree = world.git.tree_of(world.base)
    assert world.git.exists(world.base)
    assert not world.git.exists(tree)
    assert not world.git.exists("1" * 40)
    assert world.git.object_exists(tree)
    assert not world.git.object_exists("1" * 40)


def test_commits_since_gives_whole_messages_newest_first(world: World) -> None:
    base = world.base
    world.commit("first\n\nbody\nof it")
    world.commit("second ü")
    assert [commit.message for commit in world.git.commits_since(base)] == [
        "second ü",
        "first\n\nbody\nof it",
    ]
    assert world.git.commits_since("1" * 40) == ()
    assert world.git.is_ancestor(base, "HEAD")
    assert not world.git.is_ancestor("HEAD", base)
    assert [line.partition(" ")[2] for line in world.git.recent(2)] == ["second ü", "first"]


def test_only_a_line_feed_ends_a_line_of_git(world: World) -> None:
    """Python breaks lines at a form feed, a vertical tab and U+2028, too."""
    world.commit("one\x0ctwo\x0bthree\u2028four")
    put(world.top / "tracked.txt", "two\n")
    sh(world.top, "stash", "push", "-m", "set\x0caside")
    assert len(world.git.recent(9)) == 2
    assert len(world.git.stash_list()) == 1


def test_stat_and_stash_are_shown(world: World) -> None:
    put(world.top / "tracked.txt", "two\n")
    assert "tracked.txt" in world.git.diff_stat()
    sh(world.top, "stash", "push", "-m", "set aside")
    assert "set aside" in world.git.stash_list()[0]


def test_is_tracked_takes_names_literally(world: World) -> None:
    put(world.top / "*", "x")
    assert world.git.is_tracked(world.top / "tracked.txt")
    assert world.git.is_tracked(Path("dir/inner.txt"))
    assert not world.git.is_tracked(world.top / "*")
    assert not world.git.is_tracked(world.top.parent / "elsewhere")


@pytest.mark.parametrize(
    ("names", "path", "answer"),
    [
        ((), "a", False),
        (("a",), "a", True),
        (("a",), "a/b/c", True),
        (("a",), "ab", False),
        (("a/b",), "a", False),
    ],
)
def test_a_name_covers_itself_and_what_is_below(names: tuple[str, ...], path: str, answer: bool) -> None:
    assert covers(names, path) is answer


def test_a_checkout_that_core_bare_hides_is_found_and_worked_in(world: World) -> None:
    """An agent may set it between any two of our steps."""
    put(world.top / "tracked.txt", "changed")
    sh(world.top, "config", "core.bare", "true")

    assert status.changes(world.git).tracked == ("tracked.txt",)
    assert Git.open(world.top) == world.git
    (world.top / "sub").mkdir()
    assert Git.open(world.top / "sub") == world.git


@pytest.mark.parametrize("place", ["a bare repository", "the git directory", "a place beside a bare one"])
def test_what_has_no_files_of_its_own_is_no_work_tree(world: World, tmp_path: Path, place: str) -> None:
    sh(world.top, "clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    (tmp_path / "beside").mkdir()
    sh(world.top, "clone", "-q", "--bare", ".", str(tmp_path / "beside" / ".git"))
    paths = {
        "a bare repository": tmp_path / "bare",
        "the git directory": world.top / ".git" / "refs",
        "a place beside a bare one": tmp_path / "beside",
    }

    with pytest.raises(EnvSetupError, match="is in a git directory or a bare repository"):
        Git.open(paths[place])

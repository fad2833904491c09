"""What restore.py promises: all stands as it stood at the base; what is not ours is left and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system.git import checkout, restore, snapshot, status, trees
from harness_lib.system.git.repository import Git, GitError
from harness_lib.system.git.restore import HeadMovedError
from tests.conftest import for_release
from tests.system.git.gitrepo import NASTY, World, commit_all, conflict, disk, put, sh, stands_at_base

# -- undo_tracked -----------------------------------------------------------------------------------------


def test_undo_gives_tracked_files_back_and_leaves_the_rest(world: World) -> None:
    for name in NASTY:
        put(world.top / "n" / name, "x")
    world.commit(files={"state": "old", "same": "same"})
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
    put(world.top / "tracked.txt/by the user", "x")
    assert restore.undo_tracked(world.git, world.base) == ()
    assert (world.top / "tracked.txt/by the user").read_text() == "x"


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
    world.commits("the attempt's own commit", files={"link/now a directory": "x"})
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


def test_modes_come_back_and_no_private_file_becomes_readable_for_others(world: World) -> None:
    put(world.top / "program", "tracked").chmod(0o751)
    world.commit()
    modes = {"key": 0o600, "opened": 0o600, "shared": 0o640, "gone key": 0o600, "tool": 0o751}
    for name, bits in modes.items():
        put(world.top / name, "x").chmod(bits)
    world.begin()
    put(world.top / "program", "changed")
    put(world.top / "key", "changed")
    (world.top / "opened").chmod(0o644)
    put(world.top / "shared", "changed").chmod(0o666)
    (world.top / "gone key").unlink()
    (world.top / "tool").unlink()
    assert world.go_back() == []
    modes["program"] = 0o751
    assert {name: (world.top / name).stat().st_mode & 0o777 for name in modes} == modes


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


@pytest.mark.parametrize("how", ["go back", "undo"])
def test_a_file_that_comes_back_with_other_line_ends_than_it_was_committed_with_is_unchanged(
    world: World, how: str
) -> None:
    sh(world.top, "config", "core.autocrlf", "true")
    world.commit(files={"made.txt": "a\n"})
    world.begin()
    put(world.top / "made.txt", "a\nb\n")
    if how == "undo":
        restore.undo_tracked(world.git, world.base)
    else:
        assert world.go_back() == []
    assert (world.top / "made.txt").read_bytes() == b"a\r\n"
    assert world.status() == ""


def test_git_without_files_at_the_base_goes_back_to_nothing(tmp_path: Path) -> None:
    git = Git.init(tmp_path)
    world = World(tmp_path, git, git.head() or "")
    world.begin()
    commit_all(tmp_path, "work", {"a/b/c": "x"})
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


def test_directories_that_a_killed_run_has_emptied_go_with_the_next(world: World) -> None:
    world.begin()
    put(world.top / "made/deep/file", "x")
    prune = checkout.prune

    def dies(top: Path, directories: list[str]) -> None:
        """Die once the file is gone: ignore files come first, by themselves."""
        if not (world.top / "made/deep/file").exists():
            raise KeyboardInterrupt
        prune(top, directories)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkout, "prune", dies)
        with pytest.raises(KeyboardInterrupt):
            world.go_back()
    assert not (world.top / "made/deep/file").exists()
    assert (world.top / "made/deep").is_dir()
    assert world.go_back() == []
    assert not (world.top / "made").exists()


# -- home from any branch, operation or work tree, with no commit, branch or stash lost


@pytest.mark.parametrize("detached", [False, True])
def test_head_comes_back_from_another_branch_whose_commits_stay(world: World, *, detached: bool) -> None:
    if detached:
        sh(world.top, "checkout", "-q", "--detach")
    world.begin()
    sh(world.top, "checkout", "-q", "-b", "side")
    side = world.commits("on the side", files={"made": "x"})
    assert world.go_back() == []
    stands_at_base(world)
    assert sh(world.top, "rev-parse", "side") == side
    assert sh(world.top, "rev-parse", "main") == world.base


@pytest.mark.parametrize(
    "commands",
    [
        ["checkout -q --detach"],
        ["checkout -q --detach", "branch -q -D main"],
        ["checkout -q --orphan new"],
        ["commit -q --amend -m rewritten"],
    ],
    ids=["detached", "branch deleted", "orphan", "rewritten"],
)
def test_head_comes_back_from_anywhere(world: World, commands: list[str]) -> None:
    world.begin()
    for command in commands:
        sh(world.top, *command.split())
    put(world.top / "made", "x")
    assert world.go_back() == []
    stands_at_base(world)


@pytest.mark.parametrize("how", ["rebase", *for_release("merge", "cherry-pick")])
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
    side = world.linked()
    linked = side.top
    side.begin()
    put(linked / "made", "x")
    put(linked / "tracked.txt", "changed")
    sh(linked, "commit", "-q", "-a", "-m", "work")
    put(world.top / "tracked.txt", "edited in the main work tree\n")
    assert side.go_back() == []
    stands_at_base(side)
    assert not (linked / "made").exists()
    assert (world.top / "tracked.txt").read_text() == "edited in the main work tree\n"


# -- what the user, an ignore file or another repository owns


def test_a_file_that_changed_after_it_was_saved_is_left_and_named(world: World) -> None:
    world.begin()
    put(world.top / "tracked.txt", "the attempt\n")
    put(world.top / "made", "the attempt\n")
    saved = snapshot.capture(world.git)
    put(world.top / "tracked.txt", "the user\n")
    put(world.top / "made", "the user\n")
    put(world.top / "later", "the user\n")
    problems = world.go_back_from(saved)
    assert sorted(problem.split(" ")[0] for problem in problems) == ["made", "tracked.txt"]
    assert {(world.top / name).read_text() for name in ("tracked.txt", "made", "later")} == {"the user\n"}
    assert world.git.head() == world.base


def test_a_file_from_before_that_changed_after_it_was_saved_is_left_and_named(world: World) -> None:
    put(world.top / "notes", "before\n")
    world.begin()
    put(world.top / "notes", "the attempt\n")
    saved = snapshot.capture(world.git)
    put(world.top / "notes", "the user\n")
    assert "notes" in world.go_back_from(saved)[0]
    assert (world.top / "notes").read_text() == "the user\n"


def test_ignored_files_are_not_touched_not_even_when_the_attempt_made_them_visible(world: World) -> None:
    world.commit(files={".gitignore": ".env\nbuild/\n"})
    put(world.top / ".env", "SECRET")
    put(world.top / "build/out", "x")
    world.begin()
    put(world.top / ".gitignore", "")
    put(world.top / "dir/.gitignore", "inner.txt\n")
    put(world.top / "made", "x")
    assert world.go_back() == []
    assert (world.top / ".env").read_text() == "SECRET"
    assert (world.top / "build/out").read_text() == "x"
    assert not (world.top / "made").exists()
    stands_at_base(world)


def test_an_untracked_ignore_file_from_before_still_protects(world: World) -> None:
    put(world.top / ".gitignore", ".env\n.gitignore-not\n")
    put(world.top / ".env", "SECRET")
    world.begin()
    (world.top / ".gitignore").unlink()
    assert world.go_back() == []
    assert (world.top / ".env").read_text() == "SECRET"
    assert (world.top / ".gitignore").exists()


def test_ignored_content_in_the_place_of_a_tracked_file_is_saved_or_left(world: World) -> None:
    world.begin()
    sh(world.top, "rm", "-q", "--cached", "tracked.txt")
    put(world.top / ".gitignore", "tracked.txt\n")
    put(world.top / "tracked.txt", "a secret now\n")
    blind = snapshot.capture(world.git)
    assert "tracked.txt" in world.go_back_from(blind)[0]
    assert (world.top / "tracked.txt").read_text() == "a secret now\n"
    assert world.go_back() == []
    assert (world.top / "tracked.txt").read_text() == "one\n"


def test_ignored_files_below_a_directory_in_the_place_of_a_tracked_file_are_left(world: World) -> None:
    put(world.top / ".git/info/exclude", "ignored\n")
    world.begin()
    (world.top / "tracked.txt").unlink()
    put(world.top / "tracked.txt/ignored", "x")
    problems = world.go_back()
    assert "tracked.txt" in problems[0]
    assert (world.top / "tracked.txt/ignored").read_text() == "x"


def test_a_symlink_to_a_directory_is_taken_away_and_never_followed(world: World) -> None:
    outside = put(world.top.parent / "outside/inner.txt", "not ours\n").parent
    put(outside / "more", "not ours\n")
    world.begin()
    (world.top / "dir/inner.txt").unlink()
    (world.top / "dir").rmdir()
    (world.top / "dir").symlink_to(outside)
    assert world.go_back() == []
    assert sorted(disk(outside)) == ["inner.txt", "more"]
    assert (outside / "inner.txt").read_text() == "not ours\n"
    assert not (world.top / "dir").is_symlink()
    assert (world.top / "dir/inner.txt").read_text() == "inner\n"


def test_harness_files_keep_their_content_tracked_or_not_and_are_not_staged(world: World) -> None:
    world.excluded_paths = ("sub/state", "sub/.harness")
    world.commit(files={"sub/state": "old", "sub/.harness/log": "old", "sub/code": "old"})
    world.begin()
    for name in ("state", ".harness/log", ".harness/more", "code", "made"):
        put(world.top / "sub" / name, "new")
    world.commits("with harness files")
    put(world.top / "sub/state", "newest")
    assert world.go_back() == []
    assert {name: text.decode() for name, (_, text) in disk(world.top / "sub").items()} == {
        "state": "newest",
        ".harness/log": "new",
        ".harness/more": "new",
        "code": "old",
    }
    stands_at_base(world)


def test_submodules_and_nested_repositories_are_left_and_named(world: World) -> None:
    module = World.make(world.top.parent / "module")
    sh(world.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module.top), "sub")
    world.commit()
    World.make(world.top / "theirs")
    world.begin()
    assert world.before is not None
    assert world.before.unprotected == ("theirs",)
    put(world.top / "sub/work", "in the submodule\n")
    sh(world.top / "sub", "add", "-A")
    sh(world.top / "sub", "commit", "-q", "-m", "in the submodule")
    World.make(world.top / "nested")
    put(world.top / "tracked.txt", "changed")
    problems = world.go_back()
    assert sorted(problem.split(" ")[0] for problem in problems) == ["nested", "sub"]
    assert (world.top / "sub/work").read_text() == "in the submodule\n"
    assert (world.top / "nested/.git").is_dir()
    assert (world.top / "theirs/.git").is_dir()
    assert (world.top / "tracked.txt").read_text() == "one\n"


def test_a_submodule_that_the_attempt_added_is_left_on_disk(world: World) -> None:
    module = World.make(world.top.parent / "module")
    world.begin()
    sh(world.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module.top), "sub")
    sh(world.top, "commit", "-q", "-m", "add it")
    assert "sub " in world.go_back()[0]
    assert (world.top / "sub/tracked.txt").exists()
    assert not (world.top / ".gitmodules").exists()
    assert world.git.head() == world.base


def test_what_could_not_be_protected_is_never_removed_and_missed_when_gone(world: World) -> None:
    put(world.top / "large", "x" * 100)
    put(world.top / "lost", "x" * 100)
    world.before = snapshot.capture_untracked(world.git, ["large", "lost"], 10, 10)
    put(world.top / "large", "changed")
    (world.top / "lost").unlink()
    assert world.go_back() == ["lost was there before, could not be kept, and is gone"]
    assert (world.top / "large").read_text() == "changed"


# -- branch and index move to a commit, no file does, and nobody is overtaken


def _published(world: World) -> str:
    put(world.top / "new", "x")
    tree = snapshot.capture(world.git)
    return world.git.commit(tree, [world.base], "work")


def test_publish_moves_the_branch_and_the_index_and_no_file(world: World) -> None:
    commit = _published(world)
    put(world.top / "tracked.txt", "edited since\n")
    restore.move_head_and_index(world.git, commit, world.base)
    assert sh(world.top, "rev-parse", "main") == commit
    assert world.status() == "M tracked.txt"
    assert "harness: commit" in sh(world.top, "reflog", "-1")
    restore.move_head_and_index(world.git, commit, world.base)
    assert world.status() == "M tracked.txt"


def test_publish_on_a_detached_head_moves_head_alone(world: World) -> None:
    sh(world.top, "checkout", "-q", "--detach")
    commit = _published(world)
    restore.move_head_and_index(world.git, commit, world.base)
    assert world.git.head() == commit
    assert sh(world.top, "rev-parse", "main") == world.base


def test_publish_makes_the_first_commit(tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q", "-b", "main")
    git = Git.open(tmp_path)
    put(tmp_path / "new", "x")
    commit = git.commit(snapshot.capture(git), [], "first")
    restore.move_head_and_index(git, commit, None)
    assert git.head() == commit
    assert status.changes(git) == status.changes(git).__class__()


def test_publish_refuses_when_somebody_else_moved_head(world: World) -> None:
    commit, base = _published(world), world.base
    sh(world.top, "commit", "-q", "--allow-empty", "-m", "somebody else")
    with pytest.raises(HeadMovedError):
        restore.move_head_and_index(world.git, commit, base)
    assert "somebody else" in world.git.message("HEAD")


def test_publish_settles_an_index_with_conflicts_and_keeps_what_is_untracked(world: World) -> None:
    conflict(world)
    sh(world.top, "merge", "theirs", check=False)
    put(world.top / "tracked.txt", "settled\n")
    put(world.top / "loose", "x")
    tree = trees.without(world.git, snapshot.capture(world.git), ["loose"])
    commit = world.git.commit(tree, [world.base, *world.git.merge_heads()], "merged")
    restore.move_head_and_index(world.git, commit, world.base)
    world.git.quit_under_way()
    assert world.status() == "?? loose"


def test_a_foreign_lock_is_waited_for_and_then_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "PATIENCE_SECONDS", 0.1)
    commit = _published(world)
    put(world.top / ".git/index.lock", "")
    with pytest.raises(GitError, match=r"index\.lock"):
        restore.move_head_and_index(world.git, commit, world.base)
    (world.top / ".git/index.lock").unlink()
    restore.move_head_and_index(world.git, commit, world.base)
    assert world.status() == ""

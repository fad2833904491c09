"""What restore.py promises: all stands as it stood at the base, and HEAD comes back from wherever it went."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from harness_lib.system.git import advance, checkout, snapshot, status, trees
from harness_lib.system.git.repository import Git
from tests.conftest import for_release
from tests.system.git.gitrepo import LIMIT, NASTY, World, commit_all, conflict, disk, put, sh, stands_at_base

# -- undo -----------------------------------------------------------------------------------------


def _undo(world: World, excluded_paths: tuple[str, ...] = ()) -> tuple[str, ...]:
    present = snapshot.capture(world.git, excluded_paths)
    return advance.undo(world.git, advance.to_undo(world.git, present, world.base))


def test_undo_gives_tracked_files_back_and_leaves_the_rest(world: World) -> None:
    for name in NASTY:
        world.put(f"n/{name}", "x")
    world.commit(files={"state": "old", "same": "same"})
    inode = (world.top / "same").stat().st_ino
    for name in NASTY:
        world.put(f"n/{name}", "changed by the check")
    (world.top / "tracked.txt").unlink()
    (world.top / "dir/inner.txt").unlink()
    (world.top / "dir/inner.txt").symlink_to("../same")
    world.put("state", "new")
    world.put("untracked", "x")
    undone = _undo(world, ("state",))
    assert set(undone) == {*(f"n/{name}" for name in NASTY), "tracked.txt", "dir/inner.txt"}
    assert set(world.status().splitlines()) == {"M state", "?? untracked"}
    assert (world.top / "same").stat().st_ino == inode
    assert _undo(world, ("state",)) == ()


def test_undo_leaves_a_directory_that_stands_in_the_way(world: World) -> None:
    (world.top / "tracked.txt").unlink()
    world.put("tracked.txt/by the user", "x")
    assert _undo(world) == ()
    assert world.read("tracked.txt/by the user") == "x"


# -- go_back ----------------------------------------------------------------------------------------------


def test_everything_an_attempt_did_is_taken_back_and_what_was_there_before_is_there_again(
    world: World,
) -> None:
    for name in NASTY:
        world.put(f"t/{name}", "tracked")
    world.put("program", "x", executable=True)
    (world.top / "link").symlink_to("tracked.txt")
    world.commit()
    for name in NASTY:
        world.put(f"b/{name}", b"before\r\n")
    world.put("notes/mine", "mine")
    (world.top / "notes/link").symlink_to("./mine")
    world.begin()
    at_first = disk(world.top)
    for name in NASTY:
        world.put(f"t/{name}", "changed")
        world.put(f"b/{name}", "changed")
        world.put(f"made/{name}/deep", "made")
    (world.top / "program").chmod(0o644)
    (world.top / "link").unlink()
    world.commits("the attempt's own commit", files={"link/now a directory": "x"})
    (world.top / "notes/mine").unlink()
    (world.top / "notes/link").unlink()
    (world.top / "notes").rmdir()
    world.put("notes", "now a file")
    world.put("staged", "x")
    world.sh("add", "staged")
    world.put("dir/inner.txt", "edited")
    assert world.go_back() == []
    assert disk(world.top) == at_first
    assert not (world.top / "made").exists()
    stands_at_base(world)
    assert world.go_back() == []
    assert disk(world.top) == at_first


@pytest.mark.parametrize("committed", [False, True])
def test_a_name_gets_its_case_back(world: World, committed: bool) -> None:
    """Where case makes no second file, too, as on macOS: there the new name is one of the old file."""
    # Elsewhere it is a copy from there.
    world.sh("config", "core.ignorecase", "true")
    world.begin()
    world.sh("mv", "tracked.txt", "Tracked.txt")
    world.sh("mv", "dir/inner.txt", "dir/Inner.txt")
    world.put("dir/Inner.txt", "changed\n")
    if committed:
        world.commits("the attempt's own commit")
    else:
        world.sh("reset", "-q")
    names = map(str.lower, trees.entries(world.git, snapshot.capture(world.git)))
    assert sorted(names) == ["dir/inner.txt", "tracked.txt"]
    assert world.go_back() == []
    stands_at_base(world)
    assert "tracked.txt" in [path.name for path in world.top.iterdir()]


def test_unchanged_files_are_not_rewritten(world: World) -> None:
    world.put("mine", "x")
    world.begin()
    before = {name: (world.top / name).stat() for name in ("tracked.txt", "mine")}
    world.put("dir/inner.txt", "changed")
    assert world.go_back() == []
    after = {name: (world.top / name).stat() for name in before}
    assert {n: (s.st_ino, s.st_mtime_ns) for n, s in before.items()} == {
        n: (s.st_ino, s.st_mtime_ns) for n, s in after.items()
    }


def test_modes_come_back_and_no_private_file_becomes_readable_for_others(world: World) -> None:
    world.put("program", "tracked").chmod(0o751)
    world.commit()
    modes = {"key": 0o600, "opened": 0o600, "shared": 0o640, "gone key": 0o600, "tool": 0o751}
    for name, bits in modes.items():
        world.put(name, "x").chmod(bits)
    world.begin()
    world.put("program", "changed")
    world.put("key", "changed")
    (world.top / "opened").chmod(0o644)
    world.put("shared", "changed").chmod(0o666)
    (world.top / "gone key").unlink()
    (world.top / "tool").unlink()
    assert world.go_back() == []
    modes["program"] = 0o751
    assert {name: (world.top / name).stat().st_mode & 0o777 for name in modes} == modes


def test_line_endings_and_attributes_of_the_base_hold_again(world: World) -> None:
    world.put("crlf.txt", "a\r\nb\r\n")
    world.put("plain.txt", "a\nb\n")
    world.put(".gitattributes", "crlf.txt text eol=crlf\n")
    world.commit()
    world.begin()
    at_first = disk(world.top)
    world.put(".gitattributes", "*.txt text eol=crlf\n")
    world.put("dir/.gitattributes", "* text eol=crlf\n")
    for name in ("crlf.txt", "plain.txt", "dir/inner.txt"):
        world.put(name, "changed\n")
    assert world.go_back() == []
    assert disk(world.top) == at_first
    stands_at_base(world)


@pytest.mark.parametrize("how", ["go back", "undo"])
def test_a_file_that_comes_back_with_other_line_ends_than_it_was_committed_with_is_unchanged(
    world: World, how: str
) -> None:
    world.sh("config", "core.autocrlf", "true")
    world.commit(files={"made.txt": "a\n"})
    world.begin()
    world.put("made.txt", "a\nb\n")
    if how == "undo":
        _undo(world)
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
    world.put("mine/notes", "before")
    world.begin()
    world.put("made/deep/file", "x").chmod(0o400)
    world.put("dir/inner.txt", "changed").chmod(0o400)
    world.put("mine/notes", "changed")
    for name in ("made/deep", "made", "dir", "mine"):
        (world.top / name).chmod(0o500)
    try:
        assert world.go_back() == []
        assert not (world.top / "made").exists()
        assert world.read("mine/notes") == "before"
        assert world.read("dir/inner.txt") == "inner\n"
        assert (world.top / "dir").stat().st_mode & 0o777 == 0o500
    finally:
        for name in ("dir", "mine"):
            (world.top / name).chmod(0o700)


def test_hooks_and_watchers_of_the_repository_are_not_run(world: World) -> None:
    world.begin()
    for hook in ("post-checkout", "reference-transaction", "post-index-change"):
        world.put(f".git/hooks/{hook}", f"#!/bin/sh\ntouch '{world.top}/ran'\nexit 1\n", executable=True)
    world.sh("config", "core.fsmonitor", f"{world.top}/.git/hooks/post-checkout")
    world.put("tracked.txt", "changed")
    assert world.go_back() == []
    assert not (world.top / "ran").exists()


def test_directories_that_a_killed_run_has_emptied_go_with_the_next(world: World) -> None:
    world.begin()
    world.put("made/deep/file", "x")
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
        world.sh("checkout", "-q", "--detach")
    world.begin()
    world.sh("checkout", "-q", "-b", "side")
    side = world.commits("on the side", files={"made": "x"})
    assert world.go_back() == []
    stands_at_base(world)
    assert world.sh("rev-parse", "side") == side
    assert world.sh("rev-parse", "main") == world.base


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
        world.sh(*command.split())
    world.put("made", "x")
    assert world.go_back() == []
    stands_at_base(world)


@pytest.mark.parametrize("how", ["rebase", *for_release("merge", "cherry-pick")])
def test_an_operation_that_stopped_with_conflicts_is_ended(world: World, how: str) -> None:
    conflict(world)
    world.begin()
    world.put("mine", "x")
    world.begin()
    world.sh(how, "theirs", check=False)
    assert status.under_way(world.git) == how
    assert world.go_back() == []
    assert status.under_way(world.git) is None
    assert world.read("mine") == "x"
    stands_at_base(world)
    assert world.status() == "?? mine"


def test_a_stash_that_git_made_for_a_rebase_is_kept(world: World) -> None:
    conflict(world)
    world.begin()
    world.put("dir/inner.txt", "in progress\n")
    world.sh("rebase", "--autostash", "theirs", check=False)
    assert world.go_back() == []
    assert len(world.git.lines("stash", "list")) == 1
    stands_at_base(world)


def test_a_linked_worktree_goes_back_and_the_main_one_stays(world: World) -> None:
    side = world.linked()
    linked = side.top
    side.begin()
    put(linked / "made", "x")
    put(linked / "tracked.txt", "changed")
    sh(linked, "commit", "-q", "-a", "-m", "work")
    world.put("tracked.txt", "edited in the main work tree\n")
    assert side.go_back() == []
    stands_at_base(side)
    assert not (linked / "made").exists()
    assert world.read("tracked.txt") == "edited in the main work tree\n"


# -- whatever an attempt did, by chance


FOLDERS = ("", "d/", "d/e/", "f/")
NAMES = ("a", "b", "d", "f", "line\nbreak", ".gitignore")


def _stir(top: Path, chance: random.Random, times: int, tag: str) -> None:
    """Do to the files below `top` what agents do: write, remove, replace, link, mark as executable."""
    for n in range(times):
        path = top / (chance.choice(FOLDERS) + chance.choice(NAMES))
        if any(parent.is_symlink() or parent.is_file() for parent in path.parents if parent != top):
            continue
        deed = chance.choice(("write", "write", "remove", "link", "program"))
        if path.is_dir() and not path.is_symlink():
            if deed == "remove":
                shutil.rmtree(path)
            continue
        path.unlink(missing_ok=True)
        if deed == "link":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(chance.choice(("a", "d", "nowhere", "..")))
        elif deed != "remove":
            put(path, "" if path.name == ".gitignore" else f"{tag} {n}\n", executable=deed == "program")


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.release) for n in range(1, 20))])
def test_whatever_an_attempt_did_the_work_tree_is_as_it_was_and_nothing_is_lost(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    world = World.make(tmp_path / "repo")
    _stir(world.top, chance, 12, "base")
    world.commit()
    for name in ("mine", "d/mine", "f/mine"):
        if chance.random() < 0.7 and not any(
            parent.is_symlink() or parent.is_file() for parent in (world.top / name).parents
        ):
            world.put(name, f"before {name}\n")
    world.before = snapshot.capture_untracked(world.git, status.changes(world.git).untracked, LIMIT, LIMIT)
    at_first = disk(world.top)
    for part in range(3):
        _stir(world.top, chance, 10, f"attempt {part}")
        if chance.random() < 0.5:
            world.sh("add", "-A")
            world.sh("commit", "-q", "--allow-empty", "-m", "attempt")
    for name in ("mine", "d/mine"):
        if (world.top / name).is_file() and chance.random() < 0.5:
            world.put(name, "attempt\n")
    left = disk(world.top)
    made = snapshot.capture(world.git, base=world.base, before=world.before)
    assert world.go_back_from(made) == []
    assert disk(world.top) == at_first
    kept = {
        world.git.run("cat-file", "blob", oid).stdout for _, oid in trees.entries(world.git, made).values()
    }
    assert {text for _, text in left.values()} <= kept
    assert status.changes(world.git).tracked == ()

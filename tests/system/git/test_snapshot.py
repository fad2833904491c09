"""What snapshot.py promises: everything that stands there, byte for byte, and nothing moved."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from harness_lib.system.git import snapshot, status, trees
from harness_lib.system.git.calls import GitError
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import LIMIT, NASTY, World, content, disk, put, sh


def _untouched(world: World) -> tuple[object, ...]:
    index = world.top / ".git/index"
    return (
        index.read_bytes() if index.exists() else None,
        world.git.head(),
        disk(world.top),
        sorted((world.top / ".git").glob("harness-*")),
    )


def test_a_capture_is_the_work_tree_and_touches_nothing(world: World) -> None:
    for name in NASTY:
        world.put(f"n/{name}", name.encode("utf-8", "surrogateescape"))
    world.put("program", "#!/bin/sh\n", executable=True)
    (world.top / "link").symlink_to("./dir/")
    (world.top / "dangling").symlink_to("nowhere")
    (world.top / "tracked.txt").unlink()
    world.put("dir/inner.txt", "changed\n")
    world.put("empty", "")
    before = _untouched(world)
    tree = snapshot.capture(world.git)
    assert content(world.git, tree) == disk(world.top)
    assert _untouched(world) == before


def test_a_capture_in_an_unborn_repository_and_of_an_empty_one(tmp_path: Path) -> None:
    sh(tmp_path, "init", "-q")
    git = Git.open(tmp_path)
    assert snapshot.capture(git, ("a",)) == git.empty_tree()
    put(tmp_path / "a", "x")
    put(tmp_path / "b", "y")
    assert set(trees.entries(git, snapshot.capture(git, ("a",)))) == {"b"}
    assert git.head() is None


def test_ignored_files_are_left_out_unless_the_base_or_before_knows_them(world: World) -> None:
    world.put("notes", "mine\n")
    world.begin()
    world.sh("rm", "-q", "--cached", "tracked.txt")
    world.put(".gitignore", "tracked.txt\nnotes\nsecret\n")
    world.put("tracked.txt", "changed\n")
    world.put("secret", "x")
    assert set(trees.entries(world.git, snapshot.capture(world.git))) == {".gitignore", "dir/inner.txt"}
    tree = snapshot.capture(world.git, base=world.base, before=world.before)
    kept = {".gitignore", "dir/inner.txt", "tracked.txt", "notes"}
    # What only a rule of the attempt's own hides is its work, too.
    assert set(trees.entries(world.git, tree)) == {*kept, "secret"}
    assert content(world.git, tree)["tracked.txt"] == ("file", b"changed\n")


def test_what_is_kept_out_stays_as_it_is_in_head(world: World) -> None:
    world.commit(files={"state.json": "old", ".harness/log": "old"})
    world.put("state.json", "new")
    world.put(".harness/log", "new")
    world.put(".harness/more", "new")
    world.put("log.txt", "new")
    world.sh("add", "state.json", "log.txt")
    tree = snapshot.capture(world.git, ("state.json", ".harness", "log.txt", "nowhere"))
    assert tree == world.git.tree_of("HEAD")
    assert snapshot.capture(world.git, ("state.json.bak",)) != tree


def test_unmerged_files_are_captured_as_they_stand_and_kept_out_ones_as_in_head(world: World) -> None:
    world.commit(files={"state.json": "base\n"})
    for branch in ("theirs", "main"):
        world.sh("checkout", "-q", *(["-b"] if branch == "theirs" else []), branch)
        world.commit(branch, files={"tracked.txt": branch + "\n", "state.json": branch + "\n"})
    world.sh("merge", "theirs", check=False)
    tree = snapshot.capture(world.git, ("state.json",))
    captured = content(world.git, tree)
    assert b"<<<<<<<" in captured["tracked.txt"][1]
    assert captured["state.json"] == ("file", b"main\n")


def test_files_marked_to_be_added_later_are_captured(world: World) -> None:
    world.put("later", "x")
    world.sh("add", "-N", "later")
    assert content(world.git, snapshot.capture(world.git))["later"] == ("file", b"x")
    assert "later" not in trees.entries(world.git, snapshot.capture(world.git, ("later",)))


def test_a_capture_does_not_mind_a_lock_of_the_index(world: World) -> None:
    world.put(".git/index.lock", "")
    world.put("new", "x")
    assert "new" in trees.entries(world.git, snapshot.capture(world.git))


def test_a_change_in_the_same_tick_and_of_the_same_size_is_seen(world: World) -> None:
    """Git trusts stat data only of files older than the index; a younger copy must not make it trust more."""
    file = world.put("racy", "aaaa")
    world.sh("add", "racy")
    stamp = (world.top / ".git/index").stat().st_mtime_ns
    os.utime(file, ns=(stamp, stamp))
    world.sh("add", "racy")
    index = world.top / ".git/index"
    put(file, "bbbb")
    os.utime(file, ns=(stamp, stamp))
    os.utime(index, ns=(stamp, stamp))
    assert content(world.git, snapshot.capture(world.git))["racy"] == ("file", b"bbbb")


def test_a_nested_repository_and_a_submodule_are_commits_and_one_without_commit_is_passed_over(
    world: World,
) -> None:
    inner = World.make(world.top / "nested")
    world.sh("init", "-q", "unborn")
    module = World.make(world.top.parent / "module")
    world.sh("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(module.top), "sub")
    world.put("sub/dirt", "x")
    world.put("beside", "x")
    entries = trees.entries(world.git, snapshot.capture(world.git))
    assert entries["nested"] == ("160000", inner.base)
    assert entries["sub"] == ("160000", module.base)
    assert "beside" in entries
    assert not [path for path in entries if path.startswith(("unborn", "sub/", "nested/"))]


def test_fifos_and_sockets_are_no_content(world: World) -> None:
    (world.top / "tracked.txt").unlink()
    os.mkfifo(world.top / "tracked.txt")
    os.mkfifo(world.top / "fifo")
    os.chdir(world.top)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        world.put("new", "x")
        entries = trees.entries(world.git, snapshot.capture(world.git))
    assert "new" in entries
    assert not {"fifo", "socket"} & entries.keys()


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_left_out_if_untracked_and_named_if_tracked(world: World) -> None:
    world.put("untracked", "x").chmod(0)
    world.put("new", "x")
    assert set(trees.entries(world.git, snapshot.capture(world.git))) >= {"new", "tracked.txt"}
    world.put("tracked.txt", "changed").chmod(0)
    with pytest.raises(GitError, match=r"tracked\.txt"):
        snapshot.capture(world.git)


def test_a_filter_that_fails_is_named_as_the_reason(world: World) -> None:
    world.put(".gitignore", "harness-tasks.json\n.harness\n")
    world.put("sub/harness-tasks.json", "{}")
    world.put(".gitattributes", "*.bin filter=lost\n")
    world.sh("config", "filter.lost.clean", "no-such-program")
    world.sh("config", "filter.lost.required", "true")
    world.put("new.bin", "x")
    with pytest.raises(GitError, match=r"failed with 128: error: .*no-such-program"):
        snapshot.capture(world.git, ("sub/harness-tasks.json", ".harness"))


def test_a_split_index_and_a_sparse_checkout_are_captured_whole(world: World) -> None:
    world.commit(files={"other/file": "x"})
    world.sh("update-index", "--split-index")
    world.sh("sparse-checkout", "set", "dir")
    world.put("dir/inner.txt", "changed\n")
    entries = trees.entries(world.git, snapshot.capture(world.git, ("state.json",)))
    assert set(entries) == {"tracked.txt", "dir/inner.txt", "other/file"}
    assert list(trees.changed(world.git, "HEAD", snapshot.capture(world.git))) == ["dir/inner.txt"]


def test_a_capture_in_a_linked_worktree_is_of_that_worktree(world: World) -> None:
    linked = world.linked()
    linked.put("new")
    assert "new" in trees.entries(world.git, snapshot.capture(linked.git))
    assert "new" not in trees.entries(world.git, snapshot.capture(world.git))


def test_a_scratch_directory_of_a_killed_process_is_swept_after_a_day(world: World) -> None:
    old, young = world.top / ".git/harness-scratch-old", world.top / ".git/harness-scratch-young"
    put(old / "index", "x")
    put(young / "index", "x")
    os.utime(old, (1, 1))
    snapshot.capture(world.git)
    assert not old.exists()
    assert young.exists()


def test_what_is_kept_out_is_not_even_written_into_the_repository(world: World) -> None:
    """The output of checks may hold a key, and what git has once it shows to whoever asks."""
    secret = world.put(".harness/logs/1.log", "KEY=s3cret\n")
    oid = world.sh("hash-object", str(secret))

    snapshot.capture(world.git, (".harness",))

    assert not world.git.object_exists(oid)


# -- trees beside a capture, and their commits


def test_without_and_with_from_take_files_and_directories(world: World) -> None:
    for name in ("a", "d/x", "d/y", "dd", NASTY[3]):
        world.put(name, "1")
    old = world.git.tree_of(world.commit())
    world.put("a", "2")
    (world.top / "dd").unlink()
    world.put("dd/now a directory", "2")
    world.put("d/z", "2")
    (world.top / "d/x").unlink()
    new = snapshot.capture(world.git)
    assert set(trees.entries(world.git, trees.without(world.git, new, ["d", NASTY[3], "nowhere"]))) == {
        "a",
        "dd/now a directory",
        "tracked.txt",
        "dir/inner.txt",
    }
    assert trees.without(world.git, new, ["nowhere"]) == new
    mixed = trees.entries(world.git, trees.with_from(world.git, new, old, ["d", "dd", "dd/now a directory"]))
    assert set(mixed) == {"a", "d/x", "d/y", "dd", NASTY[3], "tracked.txt", "dir/inner.txt"}
    assert trees.with_from(world.git, new, old, set(trees.changed(world.git, new, old))) == old


def test_changed_says_what_it_was_and_what_it_is(world: World) -> None:
    world.put("new", "x")
    (world.top / "tracked.txt").unlink()
    facts = trees.changed(world.git, world.base, snapshot.capture(world.git))
    assert facts["new"][0] is None
    assert facts["tracked.txt"][1] is None
    assert set(facts) == {"new", "tracked.txt"}


def test_untracked_files_are_kept_byte_for_byte_and_read_back(world: World) -> None:
    world.commit(files={".gitattributes": "* text=auto eol=lf\n"})
    for name in NASTY:
        world.put(f"u/{name}", b"line\r\n\x00" + name.encode("utf-8", "surrogateescape"))
    (world.top / "u/link").symlink_to("./a//b")
    world.put("u/program", "x", executable=True)
    world.put("private", "key").chmod(0o600)
    World.make(world.top / "nested")
    before = snapshot.capture_untracked(world.git, status.changes(world.git).untracked, LIMIT, LIMIT)
    assert before.unprotected == ("nested",)
    commit = world.git.commit(before.tree, [world.base], "before")
    assert snapshot.read_untracked(world.git, commit) == before
    kept = {path.removeprefix("content/"): entry for path, entry in content(world.git, before.tree).items()}
    standing = disk(world.top)
    assert {path: kept[path] for path in before.kept} == {path: standing[path] for path in before.kept}
    assert len(before.kept) == len(NASTY) + 3


def test_what_is_too_large_is_named_and_small_files_come_first(world: World) -> None:
    for name, size in (("huge", 200), ("large", 90), ("small", 10), ("tiny", 1)):
        world.put(name, "x" * size)
    before = snapshot.capture_untracked(world.git, ["huge", "large", "small", "tiny", "gone"], 100, 100)
    assert before.kept.keys() == {"small", "tiny"}
    assert before.unprotected == ("gone", "huge", "large")
    assert before.paths == {"gone", "huge", "large", "small", "tiny"}
    nothing = snapshot.capture_untracked(world.git, [], LIMIT, LIMIT)
    assert nothing.paths == frozenset()
    for each in (before, nothing):
        assert snapshot.read_untracked(world.git, each.tree) == each


def test_globs_find_tracked_untracked_and_ignored_files(world: World) -> None:
    world.put(".git/info/exclude", "ignored\n")
    for name in ("tests/a_test.py", "tests/deep/b_test.py", "tests/ignored", "other/c_test.py", "[x]"):
        world.put(name, "x")

    def paths(*globs: str, cwd: str | None = None, excluded_paths: tuple[str, ...] = ()) -> set[str]:
        return set(trees.entries(world.git, snapshot.glob_tree(world.git, globs, cwd, excluded_paths)))

    assert paths("tests") == paths("tests/") == {"tests/a_test.py", "tests/deep/b_test.py", "tests/ignored"}
    assert paths("tests/*.py") == {"tests/a_test.py"}
    assert paths("**/*_test.py") == {"tests/a_test.py", "tests/deep/b_test.py", "other/c_test.py"}
    assert paths("*.py", cwd="tests") == {"tests/a_test.py"}
    assert paths("**", cwd="tests", excluded_paths=("tests/deep",)) == {"tests/a_test.py", "tests/ignored"}
    assert paths("tracked.txt", "nothing*") == {"tracked.txt"}
    assert paths() == set()


def test_two_glob_trees_differ_exactly_if_a_file_does(world: World) -> None:
    globs = ["dir", "tracked.txt"]
    first = snapshot.glob_tree(world.git, globs)
    world.commit(files={"unrelated": "x"})
    assert snapshot.glob_tree(world.git, globs) == first
    (world.top / "tracked.txt").chmod(0o755)
    (world.top / "dir/inner.txt").unlink()
    world.put("dir/new", "x")
    second = snapshot.glob_tree(world.git, globs)
    assert list(trees.changed(world.git, first, second)) == ["dir/inner.txt", "dir/new", "tracked.txt"]


def test_a_commit_names_its_parents_and_moves_nothing(world: World) -> None:
    tree = world.git.tree_of(world.base)
    one = world.git.commit(tree, [world.base], "one")
    two = world.git.commit(tree, [one, world.base], "-two\n\nwith a body")
    assert world.sh("rev-list", "--parents", "-1", two).split()[1:] == [one, world.base]
    assert world.git.head() == world.base


# -- marks in the index hide nothing; tests/attempts/test_conversions.py has the rest


def test_a_file_that_an_attempt_leaves_out_of_the_checkout_comes_back(world: World) -> None:
    world.commit(files={"out/b": "b\n"})
    world.put("mine", "untracked\n")
    world.begin()
    world.sh("sparse-checkout", "set", "dir")
    assert not (world.top / "out/b").exists()
    assert world.go_back() == []
    assert world.read("out/b") == "b\n"

"""Trees beside a capture: without some files, of untracked ones, of what globs name; and their commits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.system.git import snapshot, status, trees
from tests.system.git.gitrepo import LIMIT, NASTY, World, content, disk, put, sh

if TYPE_CHECKING:
    import pytest


def test_without_and_with_from_take_files_and_directories(world: World) -> None:
    for name in ("a", "d/x", "d/y", "dd", NASTY[3]):
        put(world.top / name, "1")
    old = world.git.tree_of(world.commit())
    put(world.top / "a", "2")
    (world.top / "dd").unlink()
    put(world.top / "dd/now a directory", "2")
    put(world.top / "d/z", "2")
    (world.top / "d/x").unlink()
    new = snapshot.capture(world.git)
    assert set(snapshot.entries(world.git, snapshot.without(world.git, new, ["d", NASTY[3], "nowhere"]))) == {
        "a",
        "dd/now a directory",
        "tracked.txt",
        "dir/inner.txt",
    }
    assert snapshot.without(world.git, new, ["nowhere"]) == new
    mixed = snapshot.entries(
        world.git, snapshot.with_from(world.git, new, old, ["d", "dd", "dd/now a directory"])
    )
    assert set(mixed) == {"a", "d/x", "d/y", "dd", NASTY[3], "tracked.txt", "dir/inner.txt"}
    assert snapshot.with_from(world.git, new, old, set(snapshot.difference(world.git, new, old))) == old


def test_changed_says_what_it_was_and_what_it_is(world: World) -> None:
    put(world.top / "new", "x")
    (world.top / "tracked.txt").unlink()
    facts = snapshot.changed(world.git, world.base, snapshot.capture(world.git))
    assert facts["new"][0] is None
    assert facts["tracked.txt"][1] is None
    assert set(facts) == {"new", "tracked.txt"}


def test_untracked_files_are_kept_byte_for_byte_and_read_back(world: World) -> None:
    put(world.top / ".gitattributes", "* text=auto eol=lf\n")
    world.commit()
    for name in NASTY:
        put(world.top / "u" / name, b"line\r\n\x00" + name.encode("utf-8", "surrogateescape"))
    (world.top / "u/link").symlink_to("./a//b")
    put(world.top / "u/program", "x", executable=True)
    put(world.top / "private", "key").chmod(0o600)
    World.make(world.top / "nested")
    before = snapshot.capture_untracked(world.git, status.changes(world.git).untracked, LIMIT, LIMIT)
    assert before.unprotected == ("nested",)
    commit = snapshot.commit(world.git, before.tree, [world.base], "before")
    assert snapshot.read_untracked(world.git, commit) == before
    kept = {path.removeprefix("content/"): entry for path, entry in content(world.git, before.tree).items()}
    standing = disk(world.top)
    assert {path: kept[path] for path in before.protected} == {
        path: standing[path] for path in before.protected
    }
    assert len(before.protected) == len(NASTY) + 3


def test_what_is_too_large_is_named_and_small_files_come_first(world: World) -> None:
    for name, size in (("huge", 200), ("large", 90), ("small", 10), ("tiny", 1)):
        put(world.top / name, "x" * size)
    before = snapshot.capture_untracked(world.git, ["huge", "large", "small", "tiny", "gone"], 100, 100)
    assert before.protected == ("small", "tiny")
    assert before.unprotected == ("gone", "huge", "large")
    assert before.paths == {"gone", "huge", "large", "small", "tiny"}
    assert snapshot.read_untracked(world.git, before.tree) == before


def test_nothing_untracked_is_an_empty_before(world: World) -> None:
    before = snapshot.capture_untracked(world.git, [], LIMIT, LIMIT)
    assert before.paths == frozenset()
    assert snapshot.read_untracked(world.git, before.tree) == before


def test_globs_find_tracked_untracked_and_ignored_files(world: World) -> None:
    put(world.top / ".git/info/exclude", "ignored\n")
    for name in ("tests/a_test.py", "tests/deep/b_test.py", "tests/ignored", "other/c_test.py", "[x]"):
        put(world.top / name, "x")

    def paths(*globs: str, cwd: str | None = None, keep_out: tuple[str, ...] = ()) -> set[str]:
        return set(snapshot.entries(world.git, snapshot.glob_tree(world.git, globs, cwd, keep_out)))

    assert paths("tests") == paths("tests/") == {"tests/a_test.py", "tests/deep/b_test.py", "tests/ignored"}
    assert paths("tests/*.py") == {"tests/a_test.py"}
    assert paths("**/*_test.py") == {"tests/a_test.py", "tests/deep/b_test.py", "other/c_test.py"}
    assert paths("*.py", cwd="tests") == {"tests/a_test.py"}
    assert paths("**", cwd="tests", keep_out=("tests/deep",)) == {"tests/a_test.py", "tests/ignored"}
    assert paths("tracked.txt", "nothing*") == {"tracked.txt"}
    assert paths() == set()


def test_two_glob_trees_differ_exactly_if_a_file_does(world: World) -> None:
    globs = ["dir", "tracked.txt"]
    first = snapshot.glob_tree(world.git, globs)
    put(world.top / "unrelated", "x")
    world.commit()
    assert snapshot.glob_tree(world.git, globs) == first
    (world.top / "tracked.txt").chmod(0o755)
    (world.top / "dir/inner.txt").unlink()
    put(world.top / "dir/new", "x")
    second = snapshot.glob_tree(world.git, globs)
    assert snapshot.difference(world.git, first, second) == ("dir/inner.txt", "dir/new", "tracked.txt")


def test_a_commit_names_its_parents_and_moves_nothing(world: World) -> None:
    tree = world.git.tree_of(world.base)
    one = snapshot.commit(world.git, tree, [world.base], "one")
    two = snapshot.commit(world.git, tree, [one, world.base], "-two\n\nwith a body")
    assert sh(world.top, "rev-list", "--parents", "-1", two).split()[1:] == [one, world.base]
    assert world.git.head() == world.base


def test_trees_are_compared_at_their_top_without_a_process(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = sh(world.top, "rev-parse", "HEAD^{tree}")
    put(world.top / "tracked.txt", "changed\n")
    put(world.top / "new.txt", "new\n")
    sh(world.top, "add", "-A")
    new = sh(world.top, "write-tree")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert trees.alike_at_top(world.git, old, new, ("dir", "nowhere"))
    assert not trees.alike_at_top(world.git, old, new, ("dir", "tracked.txt"))
    assert not trees.alike_at_top(world.git, old, new, ("new.txt",))
    assert not trees.alike_at_top(world.git, new, old, ("new.txt",))
    assert not trees.alike_at_top(world.git, old, "0" * 40, ("dir",))


def test_trees_of_which_one_is_replaced_are_left_to_git(world: World) -> None:
    old = sh(world.top, "rev-parse", "HEAD^{tree}")
    assert trees.alike_at_top(world.git, old, old, ("dir",))
    sh(world.top, "replace", old, world.git.empty_tree())
    assert not trees.alike_at_top(world.git, old, old, ("dir",))

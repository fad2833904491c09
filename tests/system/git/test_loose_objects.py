"""Of what kind an object is stands in its own file, and where none tells, git is asked."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from harness_lib.system.git import loose_objects
from tests.system.git.gitrepo import NASTY, World, put, sh


def file_of(world: World, oid: str) -> Path:
    return world.git.common_dir / "objects" / oid[:2] / oid[2:]


@pytest.mark.parametrize(
    ("name", "kind"), [("HEAD", "commit"), ("HEAD^{tree}", "tree"), ("HEAD:tracked.txt", "blob")]
)
def test_a_new_object_says_itself_what_it_is(world: World, name: str, kind: str) -> None:
    oid = sh(world.top, "rev-parse", name)
    assert loose_objects.kind(world.git.common_dir, oid) == kind
    assert world.git.exists(oid) is (kind == "commit")


def test_a_commit_that_is_there_and_its_tree_are_known_without_git(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, tree = str(world.git.head()), sh(world.top, "rev-parse", "HEAD^{tree}")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert world.git.exists(head)
    assert world.git.commit_called(head) == head
    assert world.git.tree_of(head) == tree


def test_the_tree_of_what_is_no_commit_or_was_replaced_is_left_to_git(world: World) -> None:
    head, tree = str(world.git.head()), sh(world.top, "rev-parse", "HEAD^{tree}")
    assert loose_objects.tree(world.git.common_dir, tree) is None
    assert world.git.tree_of(tree) == tree
    other = world.git.commit(world.git.empty_tree(), (), "Another")
    sh(world.top, "replace", head, other)
    assert world.git.tree_of(head) == world.git.empty_tree()


def test_a_short_name_of_a_commit_is_made_whole(world: World) -> None:
    head = str(world.git.head())
    assert world.git.commit_called(head[:10]) == head
    assert world.git.commit_called("none") is None


def test_a_packed_object_is_left_to_git(world: World) -> None:
    head = str(world.git.head())
    sh(world.top, "gc", "--quiet", "--prune=now")
    assert not file_of(world, head).exists()
    assert loose_objects.kind(world.git.common_dir, head) is None
    assert loose_objects.tree(world.git.common_dir, head) is None
    assert world.git.exists(head)
    assert world.git.tree_of(head) == sh(world.top, "rev-parse", "HEAD^{tree}")


def test_a_torn_file_and_a_name_that_is_no_object_tell_nothing(world: World) -> None:
    head = str(world.git.head())
    file = file_of(world, head)
    file.chmod(0o644)
    for torn in (b"", b"no zlib", b"\0" * 40):
        file.write_bytes(torn)
        assert loose_objects.kind(world.git.common_dir, head) is None
        assert not world.git.exists(head)
    assert loose_objects.kind(world.git.common_dir, "../../HEAD") is None
    assert loose_objects.kind(world.git.common_dir, "0" * 40) is None


def listed(world: World, tree: str) -> dict[str, tuple[str, str]]:
    """Return what git lists at the top of a tree: name → (mode, id)."""
    records = world.git.run("ls-tree", "-z", tree).stdout.split(b"\0")[:-1]
    found = {}
    for record in records:
        facts, _, name = record.partition(b"\t")
        mode, _, oid = facts.decode().split(" ")
        found[os.fsdecode(name)] = mode.lstrip("0"), oid
    return found


def test_what_stands_at_the_top_of_a_tree_is_read_as_git_lists_it(world: World) -> None:
    for name in NASTY:
        put(world.top / "odd" / f"x{name.replace('/', '-')}", "x")
    put(world.top / "runs", "x", executable=True)
    (world.top / "leads").symlink_to("runs")
    sh(world.top, "add", "-A")
    top = sh(world.top, "write-tree")
    for tree in (top, sh(world.top, "rev-parse", f"{top}:odd")):
        read = loose_objects.entries(world.git.common_dir, tree)
        assert read is not None
        assert {name: (mode.decode(), oid.hex()) for name, (mode, oid) in read.items()} == listed(world, tree)
    assert loose_objects.entries(world.git.common_dir, world.git.empty_tree()) in ({}, None)


def test_the_entries_of_what_is_no_whole_tree_are_left_to_git(world: World) -> None:
    tree = sh(world.top, "rev-parse", "HEAD^{tree}")
    for other in (str(world.git.head()), tree[:10], "../" + tree, "0" * 40):
        assert loose_objects.entries(world.git.common_dir, other) is None
    content = file_of(world, tree).read_bytes()
    for torn in (b"", content[:-1], zlib.compress(b"tree 3\0abc"), zlib.compress(b"tree 4\0" + b"\0" * 3)):
        file_of(world, tree).chmod(0o644)
        put(file_of(world, tree), torn)
        assert loose_objects.entries(world.git.common_dir, tree) is None

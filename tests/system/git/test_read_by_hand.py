"""What is read from git's own files is what git would say; where they cannot tell, git is asked."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from harness_lib.system.git import hidden, loose_objects, ref_files, submodules, worktrees
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import NASTY, World, put, sh

MAIN = "refs/heads/main"
RESCUES = "refs/harness/rescue/task-001/"


def resolved(git: Git, name: str) -> str | None:
    return ref_files.resolve(git.git_dir, git.common_dir, name)


def says(world: World, name: str) -> str | None:
    return sh(world.top, "rev-parse", "--verify", "--quiet", name, check=False) or None


# -- refs


def test_each_kind_of_ref_is_what_git_says_it_is(world: World) -> None:
    names = ("HEAD", MAIN, "refs/heads/a/b", "refs/tags/t", "refs/harness/rescue/x/1", "refs/remotes/o/m")
    for name in (*names[2:], "refs/heads/gone", "refs/heads/gone-not"):
        sh(world.top, "update-ref", name, "HEAD")
    sh(world.top, "tag", "-f", "-a", "-m", "annotated", "t")
    before = {name: says(world, name) for name in names}
    assert None not in before.values()
    assert {name: resolved(world.git, name) for name in names} == before
    sh(world.top, "pack-refs", "--all", "--prune")
    assert {name: resolved(world.git, name) for name in names} == before
    sh(world.top, "branch", "-D", "gone")
    sh(world.top, "commit", "-q", "--allow-empty", "-m", "More")
    assert resolved(world.git, MAIN) == resolved(world.git, "HEAD") == says(world, "HEAD") != before[MAIN]
    for name in ("refs/heads/none", "refs/heads/a/none", "refs/tags/none", "refs/heads/gone"):
        assert resolved(world.git, name) is says(world, name) is None


def test_a_branch_is_told_born_or_not_and_in_each_work_tree_and_none_when_detached(world: World) -> None:
    linked = world.linked()
    sh(linked.top, "commit", "-q", "--allow-empty", "-m", "There")
    assert ref_files.branch(linked.git.git_dir) == "refs/heads/side"
    assert resolved(linked.git, "HEAD") == says(linked, "HEAD") != resolved(world.git, "HEAD")
    assert resolved(linked.git, MAIN) == says(world, MAIN)
    assert ref_files.branch(world.git.git_dir) == sh(world.top, "symbolic-ref", "HEAD")
    sh(world.top, "checkout", "-q", "--orphan", "süß/neu")
    assert ref_files.branch(world.git.git_dir) == "refs/heads/süß/neu"
    assert resolved(world.git, "HEAD") is None
    sh(world.top, "checkout", "-q", "--detach", MAIN)
    assert ref_files.branch(world.git.git_dir) is None
    assert resolved(world.git, "HEAD") == says(world, MAIN)


def test_what_is_no_whole_name_leads_to_another_ref_or_is_torn_is_left_to_git(world: World) -> None:
    sh(world.top, "symbolic-ref", "refs/heads/leads", MAIN)
    put(world.git.common_dir / "refs/heads/torn", "")
    unclear = ("main", "HEAD^", "HEAD~1", f"{MAIN}@{{0}}", f"{MAIN}^{{tree}}", "refs/bisect/bad")
    for name in (*unclear, "refs/heads/leads", "refs/heads/torn"):
        with pytest.raises(ref_files.UnclearError):
            resolved(world.git, name)
        assert world.git.ref(name) == says(world, name)


def test_another_store_of_refs_is_left_to_git(world: World) -> None:
    """Few gits can make one yet, so its directory has to do."""
    assert ref_files.has_none(world.git.common_dir, RESCUES)
    (world.git.common_dir / "reftable").mkdir()
    with pytest.raises(ref_files.UnclearError):
        resolved(world.git, MAIN)
    assert not ref_files.has_none(world.git.common_dir, RESCUES)
    (world.git.git_dir / "HEAD").write_text("ref: refs/heads/.invalid\n", "ascii")
    with pytest.raises(ref_files.UnclearError):
        ref_files.branch(world.git.git_dir)


@pytest.mark.parametrize("name", [f"{RESCUES}1", f"{RESCUES[:-1]}1/1"])
def test_there_is_none_below_a_directory_only_where_git_lists_none(world: World, name: str) -> None:
    listed = [name] if name.startswith(RESCUES) else []
    sh(world.top, "update-ref", name, "HEAD")
    assert ref_files.has_none(world.git.common_dir, RESCUES) is not bool(listed)
    sh(world.top, "pack-refs", "--all", "--prune")
    assert ref_files.has_none(world.git.common_dir, RESCUES) is not bool(listed)
    assert sh(world.top, "for-each-ref", "--format=%(refname)", RESCUES).split() == listed
    assert [ref for ref, _oid in world.git.refs(RESCUES)] == listed
    sh(world.top, "update-ref", "-d", name)
    assert ref_files.has_none(world.git.common_dir, RESCUES)
    # What is no directory that all work trees share is not told of.
    for other in (RESCUES[:-1], "refs/harness/*/", "refs/bisect/", "refs/harness/../x/"):
        assert not ref_files.has_none(world.git.common_dir, other)


def test_what_is_stashed_is_listed_loose_and_packed(world: World) -> None:
    assert world.git.stash_list() == []
    put(world.top / "tracked.txt", "stashed")
    sh(world.top, "stash")
    assert len(world.git.stash_list()) == 1
    sh(world.top, "pack-refs", "--all", "--prune")
    assert len(world.git.stash_list()) == 1


# -- objects


def file_of(world: World, oid: str) -> Path:
    return world.git.common_dir / "objects" / oid[:2] / oid[2:]


def test_a_new_object_says_itself_what_it_is(world: World) -> None:
    for name, kind in {"HEAD": "commit", "HEAD^{tree}": "tree", "HEAD:tracked.txt": "blob"}.items():
        oid = sh(world.top, "rev-parse", name)
        assert loose_objects.kind(world.git.common_dir, oid) == kind
        assert world.git.exists(oid) is (kind == "commit")
    head = str(world.git.head())
    assert world.git.commit_called(head[:10]) == head
    assert world.git.commit_called("none") is None


def test_the_tree_of_what_is_no_commit_or_was_replaced_is_left_to_git(world: World) -> None:
    tree = sh(world.top, "rev-parse", "HEAD^{tree}")
    assert loose_objects.tree(world.git.common_dir, tree) is None
    assert world.git.tree_of(tree) == tree
    sh(world.top, "replace", "HEAD", world.git.commit(world.git.empty_tree(), (), "Another"))
    assert world.git.tree_of(str(world.git.head())) == world.git.empty_tree()


def test_a_packed_object_is_left_to_git(world: World) -> None:
    head, tree = str(world.git.head()), sh(world.top, "rev-parse", "HEAD^{tree}")
    sh(world.top, "gc", "--quiet", "--prune=now")
    assert not file_of(world, head).exists()
    assert loose_objects.kind(world.git.common_dir, head) is None
    assert loose_objects.tree(world.git.common_dir, head) is None
    assert world.git.exists(head)
    assert world.git.tree_of(head) == tree


def test_a_torn_file_and_a_name_that_is_no_object_tell_nothing(world: World) -> None:
    common, head, tree = (
        world.git.common_dir,
        str(world.git.head()),
        sh(world.top, "rev-parse", "HEAD^{tree}"),
    )
    for other in (head, tree[:10], "../" + tree, "0" * 40):
        assert loose_objects.entries(common, other) is None
    for other in ("../../HEAD", "0" * 40):
        assert loose_objects.kind(common, other) is None
    content = file_of(world, tree).read_bytes()
    for oid in (head, tree):
        file_of(world, oid).chmod(0o644)
    for torn in (b"", b"no zlib", b"\0" * 40):
        put(file_of(world, head), torn)
        assert loose_objects.kind(common, head) is None
        assert not world.git.exists(head)
    for torn in (b"", content[:-1], zlib.compress(b"tree 3\0abc"), zlib.compress(b"tree 4\0" + b"\0" * 3)):
        put(file_of(world, tree), torn)
        assert loose_objects.entries(common, tree) is None


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


# -- answers that are used again


def test_no_process_is_started_for_what_is_known_or_cannot_change(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git, head, tree = world.git, str(world.git.head()), sh(world.top, "rev-parse", "HEAD^{tree}")

    def remembered() -> list[object]:
        of_index = (hidden.marked(git), submodules.staged(git), worktrees.is_bare(git))
        return [git.tree_of(head), submodules.links(git, head), git.empty_tree(), *of_index]

    before = remembered()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert remembered() == before
    assert (git.head(), git.ref(MAIN), git.branch()) == (head, head, MAIN)
    assert (git.refs(RESCUES), git.stash_list()) == ([], [])
    assert (git.exists(head), git.commit_called(head), git.tree_of(head)) == (True, head, tree)


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
    sh(tmp_path, "init", "--quiet")
    git = Git.open(tmp_path)
    file = put(tmp_path / "new.txt", "x")
    assert (hidden.marked(git), git.is_tracked(file)) == ((), False)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(tmp_path / "nothing"))
        assert (hidden.marked(git), git.is_tracked(file)) == ((), False)
    sh(tmp_path, "add", "new.txt")
    sh(tmp_path, "update-index", "--skip-worktree", "new.txt")
    assert (hidden.marked(git), git.is_tracked(file)) == (("new.txt",), True)


def test_what_may_come_to_mean_something_else_is_asked_about_each_time(world: World) -> None:
    before = world.git.tree_of("HEAD")
    put(world.top / "tracked.txt", "changed")
    world.commit()
    assert world.git.tree_of("HEAD") == sh(world.top, "rev-parse", "HEAD^{tree}") != before
    for setting in ("true", "false", "true"):
        sh(world.top, "config", "core.bare", setting)
        assert worktrees.is_bare(world.git) is (setting == "true")

"""What is read from git's own files is what git would say; where they cannot tell, git is asked."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from harness_lib.system.git import hidden, loose_objects, ref_files, submodules, worktrees
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import NASTY, World, put, sh

# -- refs


MAIN = "refs/heads/main"


def read_back(git: Git, name: str) -> str | None:
    return ref_files.resolve(git.git_dir, git.common_dir, name)


def says(world: World, name: str) -> str | None:
    return sh(world.top, "rev-parse", "--verify", "--quiet", name, check=False) or None


def test_each_kind_of_ref_is_what_git_says_it_is(world: World) -> None:
    names = ("HEAD", MAIN, "refs/heads/a/b", "refs/tags/t", "refs/harness/rescue/x/1", "refs/remotes/o/m")
    for name in names[2:]:
        sh(world.top, "update-ref", name, "HEAD")
    sh(world.top, "tag", "-f", "-a", "-m", "annotated", "t")
    before = {name: says(world, name) for name in names}
    assert None not in before.values()
    assert {name: read_back(world.git, name) for name in names} == before
    sh(world.top, "pack-refs", "--all", "--prune")
    assert {name: read_back(world.git, name) for name in names} == before
    sh(world.top, "commit", "-q", "--allow-empty", "-m", "More")
    assert read_back(world.git, MAIN) == read_back(world.git, "HEAD") == says(world, "HEAD") != before[MAIN]
    for name in ("refs/heads/none", "refs/heads/a/none", "refs/tags/none"):
        assert read_back(world.git, name) is says(world, name) is None


def test_a_ref_that_was_removed_after_it_was_packed_is_gone(world: World) -> None:
    for name in ("gone", "gone-not"):
        sh(world.top, "branch", name)
    sh(world.top, "pack-refs", "--all")
    sh(world.top, "branch", "-D", "gone")
    assert read_back(world.git, "refs/heads/gone") is None


def test_a_branch_is_told_born_or_not_and_none_when_detached(world: World) -> None:
    assert ref_files.branch(world.git.git_dir) == sh(world.top, "symbolic-ref", "HEAD")
    sh(world.top, "checkout", "-q", "--orphan", "süß/neu")
    assert ref_files.branch(world.git.git_dir) == "refs/heads/süß/neu"
    assert read_back(world.git, "HEAD") is None
    sh(world.top, "checkout", "-q", "--detach", MAIN)
    assert ref_files.branch(world.git.git_dir) is None
    assert read_back(world.git, "HEAD") == says(world, MAIN)


def test_a_linked_work_tree_has_a_head_of_its_own(world: World) -> None:
    sh(world.top, "worktree", "add", "-q", "-b", "other", "../other")
    linked = Git.open(world.top.parent / "other")
    sh(linked.top, "commit", "-q", "--allow-empty", "-m", "There")
    assert ref_files.branch(linked.git_dir) == "refs/heads/other"
    assert read_back(linked, "HEAD") == sh(linked.top, "rev-parse", "HEAD") != read_back(world.git, "HEAD")
    assert read_back(linked, MAIN) == says(world, MAIN)


@pytest.mark.parametrize(
    "name", ["main", "HEAD^", "HEAD~1", f"{MAIN}@{{0}}", f"{MAIN}^{{tree}}", "refs/bisect/bad"]
)
def test_what_is_no_whole_name_is_left_to_git(world: World, name: str) -> None:
    with pytest.raises(ref_files.UnclearError):
        read_back(world.git, name)
    assert world.git.ref(name) == says(world, name)


def test_a_ref_that_leads_to_a_ref_and_a_torn_file_are_left_to_git(world: World) -> None:
    sh(world.top, "symbolic-ref", "refs/heads/leads", MAIN)
    (world.git.common_dir / "refs/heads/torn").write_bytes(b"")
    for name, said in (("refs/heads/leads", says(world, MAIN)), ("refs/heads/torn", None)):
        with pytest.raises(ref_files.UnclearError):
            read_back(world.git, name)
        assert world.git.ref(name) == said


def test_another_store_of_refs_is_left_to_git(world: World) -> None:
    """Few gits can make one yet, so its directory has to do."""
    (world.git.common_dir / "reftable").mkdir()
    with pytest.raises(ref_files.UnclearError):
        read_back(world.git, MAIN)
    (world.git.git_dir / "HEAD").write_text("ref: refs/heads/.invalid\n", "ascii")
    with pytest.raises(ref_files.UnclearError):
        ref_files.branch(world.git.git_dir)


@pytest.mark.parametrize("name", ["refs/harness/rescue/task-001/1", "refs/harness/rescue/task-0011/1"])
def test_there_is_none_below_a_directory_only_where_git_lists_none(world: World, name: str) -> None:
    directory = "refs/harness/rescue/task-001/"

    def none_listed() -> bool:
        return not sh(world.top, "for-each-ref", directory)

    def none_told() -> bool:
        return ref_files.has_none(world.git.common_dir, directory)

    assert none_told()
    sh(world.top, "update-ref", name, "HEAD")
    assert none_told() is none_listed() is ("0011" in name)
    sh(world.top, "pack-refs", "--all", "--prune")
    assert none_told() is none_listed() is ("0011" in name)
    assert [ref for ref, _oid in world.git.refs(directory)] == ([] if "0011" in name else [name])
    sh(world.top, "update-ref", "-d", name)
    assert none_told()


@pytest.mark.parametrize(
    "name", ["refs/harness/rescue", "refs/harness/*/", "refs/bisect/", "refs/harness/../x/"]
)
def test_where_none_may_be_is_not_told_of_what_is_no_directory_that_all_share(
    world: World, name: str
) -> None:
    assert not ref_files.has_none(world.git.common_dir, name)


def test_in_another_store_of_refs_nobody_says_that_there_is_none(world: World) -> None:
    (world.git.common_dir / "reftable").mkdir()
    assert not ref_files.has_none(world.git.common_dir, "refs/harness/rescue/")


def test_what_is_stashed_is_listed_loose_and_packed(world: World) -> None:
    assert world.git.stash_list() == []
    (world.top / "tracked.txt").write_text("stashed", "utf-8")
    sh(world.top, "stash")
    assert len(world.git.stash_list()) == 1
    sh(world.top, "pack-refs", "--all", "--prune")
    assert len(world.git.stash_list()) == 1


def test_no_process_is_started_for_it(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = world.git.head()
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert (world.git.head(), world.git.ref(MAIN), world.git.branch()) == (head, head, MAIN)
    assert not world.git.refs("refs/harness/rescue/")
    assert not world.git.stash_list()


# -- objects


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


# -- answers that are used again


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

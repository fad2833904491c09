"""What ref_files reads is what git would say; where it cannot know, it says so, and git is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.system.git import ref_files
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, sh

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
    sh(world.top, "branch", "gone")
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

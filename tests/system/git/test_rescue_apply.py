"""Work that is kept in a commit of its own comes back whole, or not at all."""

from __future__ import annotations

from pathlib import Path

from harness_lib.system.git import restore, snapshot
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import commit_all, disk, put, sh

REF = "refs/kept/one"


def _keep(repo: Path, ref: str = REF) -> str:
    """Keep the work tree of `repo` under `ref`, and take it back."""
    git = Git.open(repo)
    head = git.head()
    oid = git.commit(snapshot.capture(git), [head] if head else [], "kept\n")
    git.set_ref(ref, oid)
    sh(repo, "stash", "--include-untracked", "--quiet")
    return oid


def test_the_newest_comes_first_and_of_one_second_the_highest_number(repo: Path) -> None:
    put(repo / "a.txt", "a\n")
    oid = _keep(repo)
    for number in (2, 10, 9):
        sh(repo, "update-ref", f"refs/kept/n/{number}", oid)
    rescues = restore.listed(Git.open(repo), "refs/kept/n/")
    assert [each.ref for each in rescues] == ["refs/kept/n/10", "refs/kept/n/9", "refs/kept/n/2"]
    assert {(each.oid, each.subject) for each in rescues} == {(oid, "kept")}


def test_a_subject_may_hold_what_python_breaks_lines_at(repo: Path) -> None:
    git = Git.open(repo)
    subject = "one\x0ctwo\x0bthree\u2028four"
    git.set_ref(REF, git.commit(git.empty_tree(), (), f"{subject}\n"))
    assert [(each.ref, each.subject) for each in restore.listed(git, "refs/kept/")] == [(REF, subject)]


def test_the_origin_is_where_the_histories_part(repo: Path) -> None:
    base = sh(repo, "rev-parse", "HEAD")
    commit_all(repo, "of the attempt", {"a.txt": "a\n"})
    put(repo / "b.txt", "b\n")
    oid = _keep(repo)
    sh(repo, "reset", "-q", "--hard", base)
    sh(repo, "commit", "-q", "--allow-empty", "-m", "later")
    git = Git.open(repo)
    assert restore.origin(git, oid) == base
    assert restore.apply(git, oid).written == ("a.txt", "b.txt")


def test_it_comes_back_however_the_user_likes_differences(repo: Path) -> None:
    lines = [f"{number}\n" for number in range(20)]
    commit_all(repo, "before", {"a.txt": "".join(lines)})
    put(repo / "a.txt", "".join([*lines[:10], "new  \n", *lines[10:]]))
    oid = _keep(repo)
    commit_all(repo, "later", {"a.txt": "".join(["first\n", *lines])})
    likings = ["diff.noprefix true", "diff.mnemonicPrefix true", "diff.context 0", "apply.whitespace error"]
    for liking in [*likings, "diff.external /bin/false", "diff.srcPrefix x/", "diff.dstPrefix y/"]:
        sh(repo, "config", *liking.split())

    assert restore.apply(Git.open(repo), oid).written == ("a.txt",)

    assert (repo / "a.txt").read_text() == "".join(["first\n", *lines[:10], "new  \n", *lines[10:]])


def test_without_a_common_history_everything_in_it_is_new(repo: Path) -> None:
    git = Git.open(repo)
    put(repo / "a.txt", "a\n")
    oid = git.commit(snapshot.capture(git), (), "an orphan\n")
    (repo / "a.txt").unlink()
    assert restore.origin(git, oid) == git.empty_tree()
    assert restore.apply(git, oid).written == ("a.txt",)


def test_a_file_or_a_link_where_a_directory_would_have_to_be_is_in_the_way(
    repo: Path, tmp_path: Path
) -> None:
    put(repo / "dir/a.txt", "a\n")
    oid = _keep(repo)
    outside = tmp_path / "outside"
    outside.mkdir()
    for stand in (lambda path: put(path, "the user's\n"), lambda path: path.symlink_to(outside)):
        stand(repo / "dir")
        before = disk(repo)
        assert restore.apply(Git.open(repo), oid).in_the_way == ("dir/a.txt",)
        assert disk(repo) == before
        (repo / "dir").unlink()
    assert list(outside.iterdir()) == []


def test_what_it_removes_is_in_the_way_of_nothing(repo: Path) -> None:
    commit_all(repo, "before", {".gitignore": "*.o\n", "file": "", "dir/a.txt": "", "dir/deep/b.txt": ""})
    (repo / "link").symlink_to("dir")
    commit_all(repo, "before", {})
    for name in ("file", "dir", "link"):
        sh(repo, "rm", "-rq", name)
    stands = put(repo / "dir", "x"), put(repo / "file/new", "x"), put(repo / "link/new", "x")
    oid = _keep(repo)
    # Git would remove the others, and then fail.
    put(repo / "dir/deep/ignored.o", "the user's\n")
    assert restore.apply(Git.open(repo), oid).in_the_way == ("dir",)
    (repo / "dir/deep/ignored.o").unlink()

    assert len(restore.apply(Git.open(repo), oid).written) == 7

    assert [path.read_text() for path in stands] == ["x", "x", "x"]


def test_a_repository_inside_is_left_out_and_named(repo: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    sh(tmp_path, "init", "-q", str(inner))
    sh(inner, "commit", "-q", "--allow-empty", "-m", "one")
    put(repo / "a.txt", "a\n")
    inner.rename(repo / "inner")
    git = Git.open(repo)
    oid = git.commit(snapshot.capture(git), [str(git.head())], "kept\n")
    (repo / "a.txt").unlink()
    (repo / "inner").rename(inner)
    brought = restore.apply(git, oid)
    assert (brought.written, brought.left_out) == (("a.txt",), ("inner",))

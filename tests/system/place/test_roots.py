"""The state root is found from wherever one works, and never through what a clone brought."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system import fs
from harness_lib.system.place import find_root, own_files, roots
from tests import another_user
from tests.conftest import MakeRepo
from tests.system.git.gitrepo import sh


def make_root(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / find_root.STATE_FILE).write_text("{}")
    return path.resolve()


def root_of(cwd: Path, **env: str) -> Path | None:
    root = roots.find(env, cwd)
    return None if root is None else root.path


def test_it_is_the_nearest_upwards_from_where_one_works(tmp_path: Path) -> None:
    assert root_of(tmp_path) is root_of(tmp_path / "gone/deeper") is None
    root = make_root(tmp_path / "real")
    inner = make_root(root / "inner")
    (inner / "b/c").mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)

    assert root_of(root) == root_of(tmp_path / "link") == root
    assert root_of(inner) == root_of(inner / "b/c") == inner
    assert root_of(tmp_path, HARNESS_STATE_ROOT=str(tmp_path / "link")) == root


def test_the_project_of_the_agent_comes_before_its_working_directory(tmp_path: Path) -> None:
    project, other = make_root(tmp_path / "project"), make_root(tmp_path / "other")
    (project / "sub").mkdir()

    assert root_of(other, CLAUDE_PROJECT_DIR=str(project / "sub")) == project
    assert root_of(other, CLAUDE_PROJECT_DIR=str(tmp_path / "gone")) == other
    assert root_of(other, CLAUDE_PROJECT_DIR="") == other


def test_a_pinned_root_wins_even_without_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, pinned = make_root(tmp_path / "here"), tmp_path / "pinned"
    pinned.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))

    assert root_of(here, HARNESS_STATE_ROOT=str(pinned), CLAUDE_PROJECT_DIR=str(here)) == pinned
    assert root_of(here, HARNESS_STATE_ROOT="~/pinned") == pinned
    assert root_of(here, HARNESS_STATE_ROOT="") == here


def test_a_lost_list_is_still_found_by_its_generations(tmp_path: Path) -> None:
    """So that it can be restored; an empty folder is nothing to restore from."""
    generations = tmp_path / find_root.PRIVATE_DIR / "generations"
    generations.mkdir(parents=True)
    assert root_of(tmp_path) is None

    (generations / "1.json").write_text("{}")
    assert root_of(tmp_path) == tmp_path.resolve()


@pytest.mark.parametrize("has_generations", [True, False])
def test_a_list_in_a_database_is_found_by_its_link(tmp_path: Path, has_generations: bool) -> None:
    link = tmp_path / find_root.PRIVATE_DIR / find_root.LINK
    link.parent.mkdir()
    link.write_text("{}")
    if has_generations:
        (link.parent / "generations").mkdir()
    assert root_of(tmp_path) == tmp_path.resolve()


def as_nobody(cwd: Path, find: Callable[[Path], Path | None] = root_of) -> Path | None:
    """Return what `find` returns for another user at `cwd`, by default the root."""
    text = another_user.told(lambda: str(find(cwd) or ""))
    return Path(text) if text else None


@another_user.needs_root
def test_another_users_root_is_passed_over() -> None:
    """A list in /tmp is nobody's order to us; but root may look after everybody's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        theirs, nobodys = make_root(Path(name) / "theirs"), make_root(Path(name) / "nobodys")
        os.chown(theirs, 12345, 12345)
        os.chown(nobodys, another_user.NOBODY, -1)

        assert root_of(theirs) == theirs
        assert as_nobody(nobodys) == nobodys
        assert as_nobody(theirs) is None
        assert as_nobody(theirs, roots.of_another_user) == theirs
        assert as_nobody(nobodys, roots.of_another_user) is None


@another_user.needs_root
def test_a_directory_that_we_may_not_look_into_is_not_ours(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    root.chmod(0)

    assert as_nobody(root) is None


class TestLinkedWorktree:
    """Workers in linked worktrees share the list of the main one."""

    @pytest.fixture
    def main(self, repo: Path) -> Path:
        return make_root(repo)

    @pytest.fixture
    def linked(self, main: Path, tmp_path: Path) -> Path:
        sh(main, "worktree", "add", "-q", str(tmp_path / "linked"))
        (tmp_path / "linked/sub").mkdir()
        return tmp_path / "linked"

    def test_it_is_found_once_remembered(self, main: Path, linked: Path) -> None:
        assert root_of(linked) is None

        roots.remember(main, main / ".git")

        assert root_of(linked) == main
        assert root_of(linked / "sub") == main

    @pytest.mark.parametrize("worked_with", [find_root.PRIVATE_DIR, find_root.ENABLE_FLAG])
    def test_a_list_of_its_own_wins(self, main: Path, linked: Path, worked_with: str) -> None:
        roots.remember(main, main / ".git")
        (linked / worked_with).mkdir()

        assert root_of(make_root(linked)) == linked.resolve()

    def test_one_that_git_has_checked_out_does_not(self, main: Path, linked: Path) -> None:
        """The list is in git for CI: each work tree has a copy, and all workers must use one."""
        assert root_of(make_root(linked)) == linked.resolve()

        roots.remember(main, main / ".git")

        assert root_of(linked) == main
        assert root_of(linked / "sub") == main

    def test_of_several_lists_in_a_repository_it_is_the_one_at_the_same_place(
        self, main: Path, linked: Path
    ) -> None:
        one, other = make_root(main / "one"), make_root(main / "other")
        roots.remember(other, main / ".git")

        assert root_of(make_root(linked / "one")) == one
        assert root_of(make_root(linked / "other")) == other
        assert root_of(make_root(linked / "third")) == (linked / "third").resolve()

    def test_a_list_elsewhere_is_not_replaced_by_that_of_where_one_works(
        self, main: Path, linked: Path, make_repo: MakeRepo
    ) -> None:
        roots.remember(main, main / ".git")
        project = make_root(make_repo("project"))

        assert root_of(linked, CLAUDE_PROJECT_DIR=str(project)) == project

    def test_a_note_that_leads_nowhere_is_no_root(self, main: Path, linked: Path) -> None:
        roots.remember(main, main / ".git")
        (main / find_root.STATE_FILE).unlink()

        assert root_of(linked) is None

    def test_relative_worktree_paths_work(self, main: Path, linked: Path) -> None:
        """Git 2.48 writes them relative on request."""
        name = (main / ".git/worktrees").iterdir().__next__().name
        (linked / ".git").write_text(f"gitdir: ../{main.name}/.git/worktrees/{name}\n")
        roots.remember(main, main / ".git")

        assert root_of(linked) == main

    def test_a_main_worktree_looks_into_no_note(self, main: Path, make_repo: MakeRepo) -> None:
        other = make_repo("other")
        roots.remember(main, other / ".git")

        assert root_of(other) is None

    @pytest.mark.parametrize(
        "content", [b"", b"gitdir: ", b"hello", b"gitdir: /nowhere", b"gitdir: a\0b", b"\xff"]
    )
    def test_a_git_file_that_git_did_not_write(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / ".git").write_bytes(content)

        assert root_of(tmp_path) is None


def test_our_names_do_not_include_what_a_project_may_commit() -> None:
    names = ("STATE_FILE", "BACKUP_FILE", "LOG_FILE", "ENABLE_FLAG", "PRIVATE_DIR")

    assert {getattr(find_root, name) for name in names} < set(roots.HARNESS_NAMES)
    assert find_root.INIT_SCRIPT not in roots.HARNESS_NAMES


# -- notes about agent sessions are few and small, and none of them stays for ever


OLD = 1_000_000.0

DIES = """
import os, sys
from harness_lib.system.place import own_files
sys.addaudithook(lambda event, args: os._exit(73) if event == "os.rename" else None)
own_files.write_note(sys.argv[1], b"half")
"""


def age(path: str | Path, at: float = OLD) -> None:
    os.utime(path, (at, at))


def test_old_notes_go_and_young_ones_stay(tmp_path: Path) -> None:
    old, young = (
        [own_files.note_path(str(tmp_path), kind, who) for kind in own_files.KINDS]
        for who in ("old", "young")
    )
    own_files.sweep_notes(str(tmp_path), OLD)
    assert not list(tmp_path.iterdir()), "where there are none, none is swept"
    other = tmp_path / ".harness/stops.txt"
    for note in (*old, *young, str(other)):
        own_files.write_note(note, b"")
    for note in (*old, str(other)):
        age(note)

    own_files.sweep_notes(str(tmp_path), OLD + 1)

    assert [Path(note).exists() for note in (*old, *young)] == [False] * len(old) + [True] * len(young)
    assert other.exists()


def test_what_a_dead_writer_leaves_is_swept_as_any_temporary_file(tmp_path: Path) -> None:
    note = Path(own_files.note_path(str(tmp_path), "stops", "me"))
    assert subprocess.run([sys.executable, "-c", DIES, str(note)], check=False).returncode == 73
    (left,) = note.parent.iterdir()
    age(left)

    fs.sweep(note.parent, "*")

    assert not list(note.parent.iterdir())

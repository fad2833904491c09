"""Runs in repositories of every kind: what workers have there, and what is refused before a run begins."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm mine"


def _origin(place: Path) -> Path:
    origin = place / "origin"
    origin.mkdir()
    sh(origin, "init", "-q", "-b", "main")
    for number in range(4):
        put(origin / "a" / "x", f"{number}\n")
        put(origin / "b" / "y", f"{number}\n")
        sh(origin, "add", "-A")
        sh(origin, "commit", "-qm", f"Number {number}")
    sh(origin, "config", "uploadpack.allowFilter", "true")
    sh(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    return origin


def _sparse(place: Path) -> Path:
    origin = _origin(place)
    sh(origin, "sparse-checkout", "set", "--cone", "a")
    return origin


def _cloned(*options: str) -> Callable[[Path], Path]:
    def clone(place: Path) -> Path:
        sh(place, "clone", "-q", *options, f"file://{_origin(place)}", "clone")
        return place / "clone"

    return clone


def _bare(place: Path) -> Path:
    sh(place, "clone", "-q", "--bare", str(_origin(place)), "bare.git")
    sh(place / "bare.git", "worktree", "add", "-q", "../tree", "main")
    return place / "tree"


def _sha256(place: Path) -> Path:
    top = place / "long"
    sh(place, "init", "-q", "-b", "main", "--object-format=sha256", str(top))
    put(top / "a" / "x", "3\n")
    sh(top, "add", "-A")
    sh(top, "commit", "-qm", "Begin")
    return top


def _elsewhere(place: Path) -> Path:
    top = place / "with space"
    sh(place, "init", "-q", "-b", "main", "--separate-git-dir", str(place / "git dir"), str(top))
    put(top / "a" / "x", "3\n")
    sh(top, "add", "-A")
    sh(top, "commit", "-qm", "Begin")
    return top


@pytest.mark.parametrize(
    "make",
    [
        _sparse,
        *for_release(_cloned("--depth=2"), _cloned("--filter=blob:none"), _bare, _sha256, _elsewhere),
    ],
    ids=["sparse", "shallow", "partial", "bare", "sha256", "elsewhere"],
)
def test_a_run_works_in(make: Callable[[Path], Path], tmp_path: Path) -> None:
    top = make(tmp_path)
    sh(top, "config", "user.name", "Me")
    workshop = Workshop(top, tmp_path / "home")
    workshop.ok("init")
    look = f"(git config user.name; git log --oneline | wc -l; ls; git status --porcelain) > {tmp_path}/seen"
    workshop.add(
        "Work", "grep -q done f && grep -q 3 a/x", do=f"sh {look}\nwrite f half\nsh {COMMIT}\nwrite f done"
    )
    expected = [
        "Me",
        str(len(sh(top, "log", "--oneline").splitlines())),
        *(path.name for path in sorted(top.iterdir()) if path.name in ("a", "b")),
    ]

    workshop.ends(0)

    assert (tmp_path / "seen").read_text().split() == expected
    assert sh(top, "log", "--format=%s", "-2").splitlines()[1] == "mine"
    assert sh(top, "status", "--porcelain") == ""
    assert sh(top, "fsck", "--no-dangling") == ""
    assert (top / "b").exists() is ("b" in expected)


@pytest.mark.release
def test_a_partial_clone_whose_remote_is_gone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    sh(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{_origin(tmp_path)}", "clone")
    (tmp_path / "origin").rename(tmp_path / "gone")
    sh(tmp_path / "clone", "read-tree", "HEAD")
    workshop = Workshop(tmp_path / "clone", tmp_path / "home")
    workshop.ok("init")
    workshop.file_task("f")

    said = workshop.ends(7)

    assert "This clone is partial, and files that are missing here cannot be fetched" in said.stderr
    assert workshop.task("task-001")["attempts"] == 0


def test_a_submodule_whose_commit_the_user_lacks_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    allow = ("-c", "protocol.file.allow=always")
    sh(workshop.top, *allow, "submodule", "--quiet", "add", str(_origin(tmp_path)), "lib")
    sh(workshop.top, "commit", "-qm", "A submodule")
    lacking = "1" * 40
    sh(workshop.top, "update-index", "--cacheinfo", f"160000,{lacking},lib")
    sh(workshop.top, "commit", "-qm", "At a commit that was never pushed")
    workshop.file_task("f")

    said = workshop.ends(7)

    assert "The submodule 'lib' is recorded at 111111111111" in said.stderr
    assert "git submodule update --init lib" in said.stderr


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_large_files_come_from_the_users_store_and_go_there(workshop: Workshop, tmp_path: Path) -> None:
    top = workshop.top
    sh(top, "lfs", "install", "--local")
    sh(top, "lfs", "track", "*.bin")
    put(top / "one.bin", "one\n")
    sh(top, "add", "-A")
    sh(top, "commit", "-qm", "A large file")
    look = f"cat one.bin > {tmp_path}/seen"
    workshop.add(
        "Large",
        "grep -q three two.bin && grep -q one one.bin",
        do=f"sh {look}\nwrite two.bin two\nsh {COMMIT}\nwrite two.bin three\nsh {COMMIT}",
    )

    workshop.ends(0)

    assert (tmp_path / "seen").read_text() == "one\n"
    assert "git-lfs" in sh(top, "show", "HEAD:two.bin")
    # The one that is only in the history as well.
    kept = {path.read_text() for path in (top / ".git" / "lfs" / "objects").rglob("*") if path.is_file()}
    assert kept == {"one\n", "two\n", "two\nthree\n"}

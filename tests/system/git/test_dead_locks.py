"""What dead_locks.py promises: locks in a work tree of ours go once nobody can hold them, and no others."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_lib.system.git import dead_locks, worktrees
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found through /proc")


@pytest.fixture
def linked(world: World, tmp_path: Path) -> Git:
    return worktrees.add(world.git, tmp_path / "linked", "HEAD")


@contextmanager
def _living_git(where: Path, **env: str) -> Iterator[None]:
    """Let a git process live that works in `where`; it waits for its standard input."""
    with subprocess.Popen(
        ["git", "hash-object", "--stdin"], cwd=where, stdin=subprocess.PIPE, env=env or None
    ):
        yield


def _locks(*paths: Path) -> list[Path]:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return list(paths)


def test_what_a_dead_git_has_left_in_the_work_tree_and_in_what_is_shared_goes(linked: Git) -> None:
    own = _locks(linked.git_dir / "index.lock", linked.git_dir / "HEAD.lock")
    common = linked.common_dir
    shared = _locks(common / "packed-refs.lock", common / "config.lock", common / "refs/heads/a/b.lock")

    removed = dead_locks.remove(linked)

    assert sorted(removed) == sorted([*own, *shared])
    assert not any(path.exists() for path in removed)


def test_the_index_of_a_persons_checkout_stays_locked(world: World, linked: Git) -> None:
    (lock,) = _locks(world.git.git_dir / "index.lock")

    assert dead_locks.remove(linked) == []
    assert dead_locks.remove(world.git) == []
    assert lock.exists()


@LINUX
@pytest.mark.parametrize("by", ["standing in it", "naming it"])
def test_a_living_git_in_the_work_tree_keeps_its_lock(
    linked: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(dead_locks, "PATIENCE_SECONDS", 0.3)
    (lock,) = _locks(linked.git_dir / "index.lock")
    where, env = (linked.top, {}) if by == "standing in it" else (tmp_path, {"GIT_DIR": str(linked.git_dir)})

    with _living_git(where, **env):
        assert dead_locks.remove(linked) == []
    assert lock.exists()


@LINUX
def test_a_living_git_elsewhere_keeps_only_what_is_shared(
    world: World, linked: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_locks, "PATIENCE_SECONDS", 0.3)
    (own,) = _locks(linked.git_dir / "index.lock")
    (shared,) = _locks(linked.common_dir / "packed-refs.lock")

    with _living_git(world.top):
        assert dead_locks.remove(linked) == [own]
    assert shared.exists()


def test_a_lock_that_was_made_anew_while_we_looked_stays(
    linked: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lock,) = _locks(linked.git_dir / "index.lock")

    def renew(_seconds: float) -> None:
        lock.rename(lock.with_name("index"))
        lock.touch()

    monkeypatch.setattr("time.sleep", renew)

    assert dead_locks.remove(linked) == []
    assert lock.exists()

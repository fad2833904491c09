"""A lock is taken over from the dead alone, and what may be somebody's is left where it is."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib.errors import HeldError
from harness_lib.system.clock import Clock
from harness_lib.system.locks import mkdir_lock
from harness_lib.system.locks.mkdir_lock import Holder, SeedLock
from tests.system.locks.mkdir_locks import NO_PROCESS, left_by, litter


class SinceMade(Clock):
    """A wall clock that stands so many seconds after the lock directory of `place` changed last."""

    def __init__(self, place: Path, seconds: float) -> None:
        self.path = mkdir_lock.path_for(place)
        self.seconds = seconds

    def now(self) -> datetime:
        changed = self.path.stat().st_mtime if self.path.exists() else time.time()
        return datetime.fromtimestamp(changed, timezone.utc) + timedelta(seconds=self.seconds)


def test_the_dead_hold_nothing(lock: SeedLock) -> None:
    left_by(lock, NO_PROCESS)

    assert lock.acquire(os.getpid(), deadline=time.monotonic() + 60, ours={NO_PROCESS}) == "taken"
    assert litter(lock) == []


def test_our_own_pid_from_an_earlier_life_is_taken_over(lock: SeedLock) -> None:
    left_by(lock, os.getpid())

    assert lock.acquire(os.getpid(), deadline=0) == "taken"


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "12 34", "é"])
def test_without_a_number_it_is_held_for_ten_seconds(lock: SeedLock, tmp_path: Path, text: str) -> None:
    """A peer makes the directory and writes its pid a moment later."""
    left_by(lock, text)

    with pytest.raises(HeldError, match="has not written its pid"):
        SeedLock(tmp_path, SinceMade(tmp_path, 9.9)).acquire(os.getpid(), deadline=0)
    assert lock.path.is_dir()

    late = SeedLock(tmp_path, SinceMade(tmp_path, 10.1))
    assert late.acquire(os.getpid(), deadline=time.monotonic() + 60) == "taken"


def test_a_holder_that_died_before_signing_holds_for_ten_seconds(lock: SeedLock, tmp_path: Path) -> None:
    lock.path.mkdir()

    with pytest.raises(HeldError, match="has not written its pid"):
        SeedLock(tmp_path, SinceMade(tmp_path, 9.9)).acquire(os.getpid(), deadline=0)
    assert lock.path.is_dir()

    late = SeedLock(tmp_path, SinceMade(tmp_path, 10.1))
    assert late.acquire(os.getpid(), deadline=time.monotonic() + 60) == "taken"


def test_a_pid_file_that_is_none(lock: SeedLock) -> None:
    """A directory, a pipe or a link in its place neither hangs nor misleads us."""
    lock.path.mkdir()
    pid = lock.path / "pid"
    pid.symlink_to(lock.path.parent)
    holder = mkdir_lock.holder_of(lock.path)
    assert holder == Holder(None, holder.since if holder else None, foreign=False)
    pid.unlink()
    os.mkfifo(pid)

    with pytest.raises(HeldError):
        lock.acquire(os.getpid(), deadline=0)


def test_a_symlink_is_left_alone(lock: SeedLock, tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "pid").write_text(str(NO_PROCESS), encoding="ascii")
    lock.path.symlink_to(tmp_path / "victim")

    assert lock.acquire(os.getpid(), deadline=0) == "foreign"
    lock.release(NO_PROCESS)

    assert lock.path.is_symlink()
    assert (tmp_path / "victim" / "pid").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_another_users_directory_is_left_alone(lock: SeedLock) -> None:
    left_by(lock, NO_PROCESS)
    os.chown(lock.path, 12345, 12345)

    assert lock.acquire(os.getpid(), deadline=0) == "foreign"
    lock.release(NO_PROCESS)

    assert lock.path.exists()


def test_what_died_while_it_was_retired_is_swept_when_it_is_old(lock: SeedLock) -> None:
    for name, pid in (("dead", NO_PROCESS), ("young", NO_PROCESS), ("living", os.getppid())):
        aside = lock.path.with_name(f"{lock.path.name}.{name}")
        aside.mkdir()
        (aside / "pid").write_text(f"{pid}\n", encoding="ascii")
        (aside / ".pid.0123456789abcdef.tmp").touch()
        if name != "young":
            os.utime(aside, (0, 0))

    lock.sweep()

    assert {left.suffix for left in litter(lock)} == {".young", ".living"}


def test_a_living_lock_moved_by_mistake_is_put_back(lock: SeedLock) -> None:
    """Between looking and renaming, the dead holder's directory may have become a living peer's."""
    left_by(lock, NO_PROCESS)
    stale = mkdir_lock._inspect(lock.path)
    assert stale is not None
    (lock.path / "pid").write_text(f"{os.getppid()}\n", encoding="ascii")
    inode = lock.path.stat().st_ino

    lock._retire(stale)

    assert lock.path.stat().st_ino == inode
    assert (lock.path / "pid").read_text(encoding="ascii") == f"{os.getppid()}\n"
    assert litter(lock) == []

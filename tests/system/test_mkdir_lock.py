"""The legacy lock: taken, shared within a session, released by its holder, taken over from the dead."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib.errors import HeldError
from harness_lib.system import mkdir_lock
from harness_lib.system.clock import Clock
from harness_lib.system.mkdir_lock import SeedLock
from tests.run_to_end import run_to_end

NO_PROCESS = 2**22 + 1


def left_by(lock: SeedLock, pid: object) -> None:
    lock.path.mkdir()
    (lock.path / "pid").write_text(f"{pid}\n")


def litter(lock: SeedLock) -> list[Path]:
    return list(lock.path.parent.glob(f"{lock.path.name}?*"))


def test_taken_and_released(lock: SeedLock) -> None:
    assert mkdir_lock.holder_of(lock.path) is None
    assert lock.acquire(os.getpid(), deadline=0) == os.getpid()

    holder = mkdir_lock.holder_of(lock.path)

    assert holder is not None
    assert (holder.pid, holder.foreign) == (os.getpid(), False)
    assert holder.since is not None
    assert abs(holder.since - datetime.now(timezone.utc)) < timedelta(minutes=5)

    lock.release(os.getpid())
    assert not lock.path.exists()
    assert litter(lock) == []


def test_a_session_of_ours_shares_it(lock: SeedLock) -> None:
    """An exclusive session keeps it for its whole length; its own transactions pass."""
    left_by(lock, os.getppid())

    assert lock.acquire(os.getpid(), deadline=0, ours={os.getppid()}) == os.getppid()

    lock.release(os.getpid())
    assert lock.path.exists()


def test_only_the_holder_releases(lock: SeedLock) -> None:
    lock.acquire(os.getpid(), deadline=0)

    lock.release(os.getppid())

    assert lock.path.exists()


def test_what_others_put_inside_is_never_removed(lock: SeedLock) -> None:
    lock.acquire(os.getpid(), deadline=0)
    (lock.path / "notes").write_text("mine", encoding="ascii")

    lock.release(os.getpid())

    assert not lock.path.exists()
    assert [(left / "notes").read_text(encoding="ascii") for left in litter(lock)] == ["mine"]


# -- legacy agents and we exclude each other; tests/protocol/test_lock_both_ways.py has the rest


def test_the_name_is_the_one_that_the_shell_computes_also_through_a_link(tmp_path: Path) -> None:
    root = tmp_path / "prøject dir"
    root.mkdir()
    script = "printf '%s' \"$1\" | (shasum -a 256 2>/dev/null || sha256sum) | awk '{print $1}' | cut -c1-16"
    digest = run_to_end(["sh", "-c", script, "sh", root.resolve()], check=True).stdout.strip()
    (tmp_path / "link").symlink_to(root)

    for place in (root, tmp_path / "link"):
        assert mkdir_lock.path_for(place) == Path(f"/tmp/harness-{digest}.lock")


# -- what is stale


class SinceMade(Clock):
    """A wall clock that stands so many seconds after the lock directory of `place` changed last."""

    def __init__(self, place: Path, seconds: float) -> None:
        self.path = mkdir_lock.path_for(place)
        self.seconds = seconds

    def now(self) -> datetime:
        changed = self.path.stat().st_mtime if self.path.exists() else time.time()
        return datetime.fromtimestamp(changed, timezone.utc) + timedelta(seconds=self.seconds)


def test_our_own_pid_from_an_earlier_life_is_taken_over(lock: SeedLock) -> None:
    left_by(lock, os.getpid())

    assert lock.acquire(os.getpid(), deadline=0) == os.getpid()


@pytest.mark.parametrize("text", [None, "", "x", "-1", "0", "12 34", "é"])
def test_without_a_number_it_is_held_for_ten_seconds(
    lock: SeedLock, tmp_path: Path, text: str | None
) -> None:
    """A peer makes the directory and writes its pid a moment later, or has died before it could."""
    if text is None:
        lock.path.mkdir()
    else:
        left_by(lock, text)

    with pytest.raises(HeldError, match="has not written its pid"):
        SeedLock(tmp_path, SinceMade(tmp_path, 9.9)).acquire(os.getpid(), deadline=0)
    assert lock.path.is_dir()

    late = SeedLock(tmp_path, SinceMade(tmp_path, 10.1))
    assert late.acquire(os.getpid(), deadline=time.monotonic() + 60) == os.getpid()


def test_a_pid_file_that_is_none(lock: SeedLock) -> None:
    """A directory, a pipe or a link in its place neither hangs nor misleads us."""
    lock.path.mkdir()
    pid = lock.path / "pid"
    pid.symlink_to(lock.path.parent)
    holder = mkdir_lock.holder_of(lock.path)
    assert holder is not None
    assert (holder.pid, holder.foreign, holder.handed) == (None, False, False)
    pid.unlink()
    os.mkfifo(pid)

    with pytest.raises(HeldError):
        lock.acquire(os.getpid(), deadline=0)


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
    stale = mkdir_lock.holder_of(lock.path)
    assert stale is not None
    (lock.path / "pid").write_text(f"{os.getppid()}\n", encoding="ascii")
    inode = lock.path.stat().st_ino

    lock._retire(stale)

    assert lock.path.stat().st_ino == inode
    assert (lock.path / "pid").read_text(encoding="ascii") == f"{os.getppid()}\n"
    assert litter(lock) == []

"""The lock is taken, shared within a session and released by its holder, and nobody's living one is taken."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

from harness_lib.system.clock import Clock
from harness_lib.system.locks import mkdir_lock
from harness_lib.system.locks.mkdir_lock import SeedLock
from tests.system.locks.mkdir_locks import left_by, litter


class ActingClock(Clock):
    """Does `act` in place of the first sleep."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def sleep(self, seconds: float) -> None:
        act, self.act = self.act, None
        if act is None:
            super().sleep(seconds)
        else:
            act()


def test_taken_and_released(lock: SeedLock) -> None:
    assert mkdir_lock.holder_of(lock.path) is None
    assert lock.acquire(os.getpid(), deadline=0) == "taken"

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

    assert lock.acquire(os.getpid(), deadline=0, ours={os.getppid()}) == "shared"

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


def test_it_waits_until_the_holder_lets_go(lock: SeedLock, tmp_path: Path) -> None:
    left_by(lock, os.getppid())
    waiting = SeedLock(tmp_path, ActingClock(lambda: lock.release(os.getppid())))

    assert waiting.acquire(os.getpid(), deadline=time.monotonic() + 60) == "taken"

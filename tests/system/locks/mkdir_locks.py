"""The lock of the prose as others leave it, for the tests of mkdir_lock.py."""

from __future__ import annotations

from pathlib import Path

from harness_lib.system.locks.mkdir_lock import SeedLock

NO_PROCESS = 2**22 + 1


def left_by(lock: SeedLock, pid: object) -> None:
    lock.path.mkdir()
    (lock.path / "pid").write_text(f"{pid}\n", encoding="utf-8")


def litter(lock: SeedLock) -> list[Path]:
    return list(lock.path.parent.glob(f"{lock.path.name}?*"))

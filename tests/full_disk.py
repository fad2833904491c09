"""A small disk of its own for a test that fills it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def disk(place: Path, options: str) -> Iterator[bool]:
    """Mount a file system of its own at `place`; yield whether the system allows it."""
    place.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    made = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Mount a disk of two megabytes at `place`; skip the test where that is not allowed."""
    with disk(place, "size=2m") as made:
        if not made:
            pytest.skip("nothing can be mounted here")
        yield


def fill(disk: Path) -> Path:
    """Take all the room that is left; return the file that has it."""
    path = disk / "filler"
    with path.open("ab", buffering=0) as filler, suppress(OSError):
        while filler.write(b"0" * 1024):
            pass
    return path

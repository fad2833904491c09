"""A small disk of its own for a test that fills it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Mount a disk of two megabytes at `place`; skip the test where that is not allowed."""
    if os.geteuid():
        pytest.skip("only root can mount a disk")
    place.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """Take all the room that is left; return the file that has it."""
    path = disk / "filler"
    with path.open("ab", buffering=0) as filler, suppress(OSError):
        while filler.write(b"0" * 1024):
            pass
    return path

"""Directories of our own inside a git directory, gone after use."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "harness-scratch-"
STALE_SECONDS = 24 * 3600.0


@contextmanager
def directory(git_dir: Path) -> Iterator[Path]:
    """Yield a new directory in `git_dir`, gone afterwards."""
    _sweep(git_dir)
    place = git_dir / f"{PREFIX}{os.urandom(8).hex()}"
    place.mkdir(0o700)
    try:
        yield place
    finally:
        _remove(place)


def _sweep(git_dir: Path) -> None:
    """Remove what killed processes left; a scratch directory lives for seconds, so a day is beyond doubt."""
    for old in git_dir.glob(PREFIX + "*"):
        try:
            stale = time.time() - old.stat().st_mtime > STALE_SECONDS
        except FileNotFoundError:
            continue
        if stale:
            _remove(old)


def _remove(place: Path) -> None:
    # Mostly there is nothing but one file in it, and what removes whole trees is long in loading.
    try:
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
    except OSError:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def index(git_dir: Path, *, copy: bool = False) -> Iterator[dict[str, str]]:
    """Yield the environment of a private index: empty, or with `copy` as the real one is now."""
    with directory(git_dir) as place:
        private = place / "index"
        if copy:
            _copy(git_dir / "index", private)
        yield {"GIT_INDEX_FILE": str(private)}


def _copy(source: Path, target: Path) -> None:
    """Copy an index, if there is one, with its mtime.

    git trusts no file as young as its index: a younger copy would make it trust one that was changed within
    the same tick.
    """
    try:
        stream = source.open("rb")
    except FileNotFoundError:
        return
    with stream:
        facts = os.fstat(stream.fileno())
        target.write_bytes(stream.read())
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))

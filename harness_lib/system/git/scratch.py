"""Directories of our own inside a git directory, gone after use."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "harness-scratch-"
STALE_SECONDS = 24 * 3600.0


@contextmanager
def directory(git_dir: Path) -> Iterator[Path]:
    """Yield a new directory in `git_dir`, gone afterwards."""
    import shutil  # noqa: PLC0415 (most questions to git need no directory, and this is dear)
    import tempfile  # noqa: PLC0415

    _sweep(git_dir)
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=git_dir))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _sweep(git_dir: Path) -> None:
    """Remove what killed processes left; a scratch directory lives for seconds, so a day is beyond doubt."""
    for old in git_dir.glob(PREFIX + "*"):
        try:
            stale = time.time() - old.stat().st_mtime > STALE_SECONDS
        except FileNotFoundError:
            continue
        if stale:
            import shutil  # noqa: PLC0415

            shutil.rmtree(old, ignore_errors=True)


@contextmanager
def index(git_dir: Path, *, copy: bool = False) -> Iterator[dict[str, str]]:
    """Yield the environment of a private index: empty, or with `copy` as the real one is now."""
    with directory(git_dir) as place:
        private = place / "index"
        if copy and (git_dir / "index").exists():
            import shutil  # noqa: PLC0415

            # With its mtime: git trusts no file as young as its index, and a younger copy would make it
            # trust one that was changed within the same tick.
            shutil.copy2(git_dir / "index", private)
        yield {"GIT_INDEX_FILE": str(private)}

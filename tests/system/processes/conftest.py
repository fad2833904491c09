"""Where what a command prints is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs/task-001/1.log"


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """Yield a directory for temporary files: a sandbox may write to `/dev/shm`, where tests often run."""
    with TemporaryDirectory(prefix="sandbox-") as place:
        yield Path(place).resolve()

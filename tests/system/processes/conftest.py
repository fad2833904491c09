"""Where what a command prints is kept."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "task-001" / "1.log"

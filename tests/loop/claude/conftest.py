"""A fake Claude Code on the PATH."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.loop.claude.playing import Stage


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    place = tmp_path / "installed"
    place.mkdir()
    source = Path(__file__).with_name("fake.py").read_text(encoding="utf-8")
    program = place / "claude"
    program.write_text(source.replace("/usr/bin/env python3", sys.executable, 1), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("claude") == str(program)
    return Stage(place)

"""HARNESS_HOME names one directory for `harness` and `hs`, in which neither is in the other's way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.workshop import Workshop

TOOL = '#!/bin/sh\n[ "$1" = --describe ] && echo "Greets"\n'


def _tool(source: Path) -> Path:
    tool = source / "tools" / "greet"
    tool.parent.mkdir(parents=True)
    tool.write_text(TOOL, encoding="utf-8")
    tool.chmod(0o755)
    return tool


def _tools(workshop: Workshop, env: dict[str, str]) -> str:
    command = [sys.executable, "-m", "harness_lib.hs", "tools"]
    return subprocess.run(
        command, cwd=workshop.top, env=env, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.release
def test_both_find_their_own_where_it_says(workshop: Workshop, home: Path) -> None:
    tool = _tool(workshop.home)
    workshop.add("Greet", "test -f greeted")

    said = workshop.run(agent="pwd > greeted")
    installed = workshop.harness("hooks", "install", "--agent", "copilot")

    assert (said.returncode, installed.returncode) == (0, 0), (said.stderr, installed.stderr)
    assert f"{workshop.home}/worktrees/" in (workshop.top / "greeted").read_text(encoding="utf-8")
    assert (workshop.home / "hook-directories").is_dir()
    assert f"Greets  [{tool}]" in _tools(workshop, workshop.env)
    assert tool.read_text(encoding="utf-8") == TOOL
    assert not (home / ".harness").exists()
    assert not (home / ".local").exists()


@pytest.mark.release
def test_without_it_each_has_its_own(workshop: Workshop, home: Path) -> None:
    tool = _tool(home / ".harness")
    env = {
        name: value for name, value in workshop.env.items() if name not in ("HARNESS_HOME", "XDG_DATA_HOME")
    }

    workshop.add("Greet", "test -f greeted")
    command = [sys.executable, "-m", "harness_lib", "run", "--agent-command", "pwd > greeted"]
    subprocess.run(command, cwd=workshop.top, env=env, check=True, stdin=subprocess.DEVNULL)

    assert f"Greets  [{tool}]" in _tools(workshop, env)
    assert f"{home}/.local/share/harness/worktrees/" in (workshop.top / "greeted").read_text(encoding="utf-8")
    assert [path.name for path in (home / ".harness").iterdir()] == ["tools"]

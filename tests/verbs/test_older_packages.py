"""An installed harness beside packages that somebody has put back to versions from before it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.system.git.gitrepo import put
from tests.terminal.pseudo_terminal import read_to_end, typed
from tests.verbs.project import Project, begin


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `harness` find a rich and a jsonschema without what it imports of them."""
    place = tmp_path / "packages"
    for name, version in {"jsonschema": "3.2.0", "rich": "10.0.0"}.items():
        put(place / name / "__init__.py", "")
        put(place / name / "console.py", "")
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        put(place / f"{name}-{version}.dist-info" / "METADATA", metadata)
    monkeypatch.setenv("PYTHONPATH", f"{place}{os.pathsep}{CHECKOUT}")


def piped(project: Project, *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness_lib", *argv]
    return subprocess.run(command, cwd=project.top, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("older")
def test_what_needs_them_names_the_package_and_doctor_the_version(project: Project) -> None:
    project.edit(created="2026-11-29T09:00:00Z")

    said = piped(project, "check")

    assert said.returncode == 7
    assert "harness: ENV_SETUP: The package jsonschema cannot be used: " in said.stderr
    assert "hint: See what harness needs: " in said.stderr
    assert not list((project.top / ".harness").glob("bug-*"))
    found = piped(project, "doctor").stdout
    assert "bad   too old: jsonschema 3.2.0 (harness needs 4.18), rich 10.0.0 (harness needs 13.7)" in found


@pytest.mark.usefixtures("older")
def test_a_reply_on_a_terminal_only_loses_its_colours(project: Project) -> None:
    begin(project.agent())
    with typed(project.top, "show", "task-001") as (_process, ours):
        said = read_to_end(ours)
    assert "task-001 [in_progress] One" in said
    assert "Traceback" not in said

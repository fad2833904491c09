"""What hooks decide from when somebody else has touched the list."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hooks.conftest import CHECKOUT, ME, Ring, add, agent
from tests.ops.project import Project


def strict_skill(place: Path) -> Path:
    """Return a copy of the skill whose schema knows of no finished task; the codec does."""
    for name in ("hooks", "harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    file = place / "schemas" / "harness-tasks.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    schema["properties"]["session_count"] = {"type": "integer", "maximum": 0}
    file.write_text(json.dumps(schema), encoding="utf-8")
    return place


def ring_in(skill: Path, project: Project) -> str:
    data = json.dumps({"session_id": ME, "cwd": str(project.top), "hook_event_name": "Stop"}).encode()
    command: list[str | Path] = [sys.executable, "-I", "-S", skill / "hooks" / "harness-stop.py"]
    done = subprocess.run(command, input=data, cwd=project.top, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.mark.usefixtures("prepared")
def test_a_list_is_checked_by_its_schema_before_anybody_is_let_go(project: Project, tmp_path: Path) -> None:
    skill = strict_skill(tmp_path / "skill")
    add(project, "One")
    agent(project).ok("start")
    project.without_proofs()
    project.edit_task("task-001", status="completed")

    said = ring_in(skill, project)

    assert "session_count" in json.loads(said)["reason"]
    assert project.marker


def test_without_jsonschema_the_codec_decides(project: Project, tmp_path: Path) -> None:
    skill = strict_skill(tmp_path / "skill")
    add(project, "One")
    agent(project).ok("start")
    project.without_proofs()
    project.edit_task("task-001", status="completed")

    assert ring_in(skill, project) == ""
    assert not project.marker


@pytest.mark.usefixtures("prepared")
def test_a_list_of_ours_is_not_even_parsed(project: Project, ring: Ring) -> None:
    """The same size and stamp, and yet no list: only the summary is read."""
    add(project, "One")
    agent(project).ok("start")
    found = project.file.stat()
    with project.file.open("r+b") as stream:
        stream.write(b"?" * found.st_size)
    os.utime(project.file, ns=(found.st_atime_ns, found.st_mtime_ns))
    summary = project.top / ".harness" / "summary.json"
    kept = json.loads(summary.read_text(encoding="utf-8"))
    kept["stamp"][3] = project.file.stat().st_ctime_ns
    summary.write_text(json.dumps(kept), encoding="utf-8")

    assert "0 of 1 tasks are completed" in ring("stop", {}).reason


def test_a_missing_list_is_judged_by_its_last_generation(project: Project, ring: Ring) -> None:
    add(project, "One")
    agent(project).ok("start")
    project.file.unlink()

    assert "0 of 1 tasks are completed" in ring("stop", {}).reason

"""What hooks decide from when somebody else has touched the list."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hookio.conftest import CHECKOUT, ME, Ring, add, agent
from tests.verbs.project import Project


def strict_skill(place: Path) -> Path:
    """Return a copy of the skill whose schema knows of no finished task; the codec does."""
    for name in ("hooks", "harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    file = place / "schemas" / "harness-tasks.schema.json"
    schema = json.loads(file.read_text(encoding="utf-8"))
    schema["properties"]["session_count"] = {"type": "integer", "maximum": 0}
    file.write_text(json.dumps(schema), encoding="utf-8")
    return place


def ring_in(skill: Path, project: Project, event: str = "Stop") -> str:
    data = json.dumps({"session_id": ME, "cwd": str(project.top), "hook_event_name": event}).encode()
    script = skill / "hooks" / f"harness-{event.lower()}.py"
    command: list[str | Path] = [sys.executable, "-I", "-S", script]
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
def test_what_the_schema_said_of_a_list_is_kept_with_what_it_was_said_of(
    project: Project, tmp_path: Path
) -> None:
    """A hook that only looks does not stand for one that asks the schema; one that asks does."""
    skill = strict_skill(tmp_path / "skill")
    add(project, "One")
    agent(project).ok("start")
    project.edit_task("task-001", status="completed")

    assert ring_in(skill, project, "SubagentStart") == ""
    first = json.loads(ring_in(skill, project))["reason"]
    unreadable(project, "foreign.json")
    # It is held once by a list that cannot be used.
    shutil.rmtree(project.top / ".harness" / "stops")
    second = json.loads(ring_in(skill, project))["reason"]

    assert "session_count" in first
    assert "session_count" in second


@pytest.mark.usefixtures("prepared")
def test_a_list_of_somebody_elses_is_parsed_once(project: Project, ring: Ring) -> None:
    add(project, "One", "Two")
    agent(project).ok("start")
    project.edit_task("task-001", priority="P0")
    assert "0 of 2 tasks are completed" in ring("stop", {}).reason
    unreadable(project, "foreign.json")

    assert "0 of 2 tasks are completed" in ring("stop", {}).reason


def test_a_list_that_changes_again_is_parsed_again(project: Project, ring: Ring) -> None:
    add(project, "One", "Two")
    agent(project).ok("start")
    project.edit_task("task-001", priority="P0")
    assert "Next is task-001" in ring("stop", {}).reason
    project.edit_task("task-001", status="failed", attempts=3)

    assert "Next is task-002" in ring("stop", {}).reason


def unreadable(project: Project, name: str) -> None:
    """Make the list no list at all, and let what was found out about it bear the new stamp."""
    before = project.file.stat()
    with project.file.open("r+b") as stream:
        stream.write(b"?" * before.st_size)
    os.utime(project.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    place = project.top / ".harness" / name
    kept = json.loads(place.read_text(encoding="utf-8"))
    kept["stamp"][3] = project.file.stat().st_ctime_ns
    place.write_text(json.dumps(kept), encoding="utf-8")


@pytest.mark.usefixtures("prepared")
def test_a_list_of_ours_is_not_even_parsed(project: Project, ring: Ring) -> None:
    """The same size and stamp, and yet no list: only the summary is read."""
    add(project, "One")
    agent(project).ok("start")
    unreadable(project, "summary.json")

    assert "0 of 1 tasks are completed" in ring("stop", {}).reason


def test_a_missing_list_is_judged_by_its_last_generation(project: Project, ring: Ring) -> None:
    add(project, "One")
    agent(project).ok("start")
    project.file.unlink()

    assert "0 of 1 tasks are completed" in ring("stop", {}).reason

"""A clone that brings one of our files as a symbolic link gets an error, and its target is never touched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hookio.conftest import EVENTS, Ring
from tests.verbs.project import Project, make

LIST: dict[str, Any] = {
    "session_config": {"concurrency_mode": "exclusive"},
    "tasks": [
        {"id": "task-001", "status": "pending", "validation": {"command": "true"}, "halt": "$(id)"},
        {"id": "task-002", "status": "in_progress", "claimed_by": "agent"},
    ],
}
FILES = (
    "harness-tasks.json",
    "harness-tasks.json.bak",
    "harness-progress.txt",
    ".harness-active",
    "harness-init.sh",
    "harness.toml",
    ".harness/summary.json",
    ".harness/state.lock",
    ".harness/budget.json",
    ".harness/.gitignore",
)
DIRECTORIES = (
    ".harness",
    ".harness/generations",
    ".harness/logs",
    ".harness/logs/task-001",
    ".harness/stops",
    ".harness/beats",
    ".harness/ended",
)
VERBS = (
    ("init",),
    ("init", "--init-script", "--gitignore"),
    ("add", "One", "--validate", "true"),
    ("import", "plan.md"),
    ("export", "--tick", "plan.md"),
    ("edit", "task-001", "--title", "Another"),
    ("retry", "task-001"),
    ("accept", "task-001"),
    ("return", "task-001", "no"),
    ("remove", "task-001"),
    ("show", "task-001"),
    ("start",),
    ("claim",),
    ("checkpoint", "task-001", "1/2", "half"),
    ("note", "task-001", "hello"),
    ("validate", "--all"),
    ("finish",),
    ("fail", "task-001", "--category", "TASK_EXEC", "--message", "no"),
    ("release", "task-001"),
    ("recover",),
    ("beat",),
    ("status",),
    ("log",),
    ("graph",),
    ("check",),
    ("check", "--repair"),
    ("trust",),
    ("rescue", "list"),
    ("pause",),
    ("budget",),
    ("run", "--agent-command", "true"),
    ("stop",),
)
SOME = [verb for verb in VERBS if verb[0] in ("init", "add", "status", "start", "run")]


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Project]:
    """Return a project as a clone brings it: with a list and an enable flag, and nobody's trust."""
    project = make(tmp_path / "repo", bare=True)
    project.put("harness-tasks.json", json.dumps(LIST))
    project.put(".harness-active", "")
    project.put("plan.md", "- [ ] More\n")
    yield project
    project.close()


def _lead_out(project: Project, name: str, victim: Path) -> None:
    """Let `name` in the project be a link to `victim`, which gets the content that it has."""
    place = project.top / name
    if place.is_dir():
        shutil.copytree(place, victim)
        shutil.rmtree(place)
    elif name in DIRECTORIES:
        victim.mkdir(parents=True)
    else:
        victim.parent.mkdir(parents=True)
        victim.write_bytes(place.read_bytes() if place.exists() else b"precious\n")
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)


def _content(place: Path) -> dict[str, bytes | None]:
    paths = [place, *place.rglob("*")] if place.is_dir() else [place]
    return {str(path): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.mark.parametrize("name", [*FILES, *DIRECTORIES])
def test_none_of_our_files_is_opened_by_link(clone: Project, ring: Ring, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "outside/victim"
    _lead_out(clone, name, victim)
    before, agent = _content(victim.parent), clone.agent("agent")

    for verb in VERBS if name in ("harness-tasks.json", ".harness") else SOME:
        said = agent.fails(8, *verb)
        assert said["error"]["kind"] == "REFUSED", verb
        assert str(clone.top / name) in said["error"]["message"], verb
        assert "symbolic link" in said["error"]["message"], verb
    # No hook opens the output of checks.
    for event in EVENTS if name != ".harness/logs/task-001" else ():
        assert ring(event, {"tool_name": "Edit", "tool_input": {"file_path": "harness-tasks.json"}}).silent

    assert _content(victim.parent) == before
    assert (clone.top / name).is_symlink()


@pytest.mark.parametrize("name", ["harness-tasks.json", "harness-progress.txt", ".harness", ".gitignore"])
def test_a_link_to_nothing_is_none_of_our_files_either(clone: Project, tmp_path: Path, name: str) -> None:
    """What is made through it would be made outside."""
    (clone.top / name).unlink(missing_ok=True)
    (clone.top / name).symlink_to(tmp_path / "not-there")

    assert "symbolic link" in clone.agent("agent").fails(8, "init", "--gitignore")["error"]["message"]

    assert not (tmp_path / "not-there").exists()


def test_the_output_of_a_check_goes_to_no_file_that_a_link_names(clone: Project, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    logs = clone.top / ".harness/logs/task-001"
    logs.mkdir(parents=True)
    for number in range(1, 4):
        for kind in ("", "-validate", "-cleanup"):
            (logs / f"{number}{kind}.log").symlink_to(victim)
    (logs / "validate.log").symlink_to(victim)
    clone.edit(tasks=LIST["tasks"][:1])
    clone.agent("person").trusts()
    agent = clone.agent("agent")

    for verb in ("start", "validate", "claim", "finish", "status", "show"):
        agent(verb, *(["task-001"] if verb not in ("start", "status") else []))

    assert victim.read_text() == "precious\n"

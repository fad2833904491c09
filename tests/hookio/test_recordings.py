"""What real clients have sent, replayed through the executables.

tests/hosts/payloads/HOST-EVENT.json are recordings of Claude Code 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0
and Copilot CLI 1.0.102; only their paths were shortened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hookio.conftest import CHECKOUT, EVENTS, Heard, Ring, add, agent
from tests.verbs.project import Project

RECORDINGS = Path(__file__).parents[1] / "hosts" / "payloads"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.json"))
UNKNOWN = [name for name in NAMES if name.endswith("userpromptsubmit")]


def load(name: str) -> dict[str, Any]:
    recording = json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(recording, dict)
    return recording


def replay(ring: Ring, project: Project, name: str, hook: str) -> Heard:
    """Ring `hook` with the recording, which then happened in `project`."""
    return ring(hook, json.dumps({**load(name), "cwd": str(project.top)}).encode())


def session_of(name: str) -> str:
    recording = load(name)
    return str(recording.get("session_id", recording.get("sessionId")))


@pytest.mark.parametrize("name", NAMES)
def test_no_recording_is_answered_where_there_is_no_list(ring: Ring, tmp_path: Path, name: str) -> None:
    data = json.dumps({**load(name), "cwd": str(tmp_path)}).encode()

    assert all(ring(hook, data).silent for hook in EVENTS)


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("claude-stop", False),  # its subagent is still running
        ("claude-stop-teammate", True),
        ("codex-stop", True),
        ("gemini-afteragent", True),
        ("copilot-agentstop", True),
        ("copilot-stop", True),
    ],
)
def test_the_session_that_works_is_held(ring: Ring, project: Project, name: str, *, held: bool) -> None:
    add(project, "One")
    agent(project, session_of(name)).ok("start")

    heard = replay(ring, project, name, "stop")

    assert heard.silent is not held
    assert not held or heard.reason


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.endswith(("stop", "afteragent", "-teammate"))]
)
def test_another_session_is_not_held(ring: Ring, project: Project, name: str) -> None:
    add(project, "One")
    agent(project).ok("claim")

    hook = "subagentstop" if "subagentstop" in name else "stop"
    assert replay(ring, project, name, hook).silent


@pytest.mark.parametrize("name", [name for name in NAMES if "subagentstop" in name])
def test_a_subagent_is_held_while_it_owns_a_task(ring: Ring, project: Project, name: str) -> None:
    add(project, "One")
    project.agent(load(name)["agent_id"]).ok("claim")

    assert "You hold task-001" in replay(ring, project, name, "subagentstop").reason


@pytest.mark.parametrize("name", [name for name in NAMES if "subagentstart" in name])
def test_a_subagent_is_told_the_name_by_which_it_is_held(ring: Ring, shared: Project, name: str) -> None:
    add(shared, "One")
    output = replay(ring, shared, name, "subagentstart").json["hookSpecificOutput"]

    assert output["hookEventName"] == "SubagentStart"
    assert "\n" not in output["additionalContext"]
    assert len(output["additionalContext"]) < 500
    worker, command = output["additionalContext"].split()[-3:-1]
    assert command == f"{CHECKOUT}/bin/harness"
    shared.agent(worker.removeprefix("HARNESS_WORKER_ID=")).ok("claim")
    stop = {**load(name), "cwd": str(shared.top), "hook_event_name": "SubagentStop"}
    assert "You hold task-001" in ring("subagentstop", json.dumps(stop).encode()).reason


@pytest.mark.parametrize("name", [name for name in NAMES if "subagentstart" in name])
def test_a_subagent_in_a_list_for_one_is_told_nothing(ring: Ring, project: Project, name: str) -> None:
    add(project, "One")
    agent(project, session_of(name)).ok("start")

    assert replay(ring, project, name, "subagentstart").silent


def test_a_subagent_is_not_held_for_its_parent(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project, session_of("claude-subagentstop")).ok("claim")

    assert replay(ring, project, "claude-subagentstop", "subagentstop").silent


def test_an_idle_teammate_is_held_while_it_owns_a_task(ring: Ring, project: Project) -> None:
    add(project, "One")
    assert replay(ring, project, "claude-teammateidle", "teammateidle").silent
    project.agent("worker1").ok("claim")

    heard = replay(ring, project, "claude-teammateidle", "teammateidle")

    assert (heard.code, heard.out) == (2, "")
    assert "You hold task-001" in heard.err


@pytest.mark.parametrize("name", [name for name in NAMES if "sessionstart" in name])
def test_a_new_session_is_told_in_the_words_of_its_host(ring: Ring, project: Project, name: str) -> None:
    add(project, "One")
    args = (name.partition("-")[0],)
    data = json.dumps({**load(name), "cwd": str(project.top)}).encode()

    output = ring("sessionstart", data, args=args).json

    if args == ("copilot",):
        assert list(output) == ["additionalContext"]
    else:
        assert output["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        output = output["hookSpecificOutput"]
    assert 'Next: task-001 "One".' in output["additionalContext"]


@pytest.mark.parametrize("name", [name for name in NAMES if "sessionend" in name])
def test_the_end_of_the_session_that_works_is_noted(ring: Ring, project: Project, name: str) -> None:
    add(project, "One")
    agent(project, session_of(name)).ok("start")
    before = project.file.read_bytes()

    assert replay(ring, project, name, "sessionend").silent
    assert len(list((project.top / ".harness" / "ended").iterdir())) == 1
    assert project.file.read_bytes() == before


@pytest.mark.parametrize("name", UNKNOWN)
def test_events_that_are_none_of_ours_are_not_answered(ring: Ring, project: Project, name: str) -> None:
    add(project, "One")
    agent(project, session_of(name)).ok("start")

    assert all(replay(ring, project, name, hook).silent for hook in EVENTS)


def test_the_event_counts_and_not_the_doorbell(ring: Ring, project: Project) -> None:
    """Claude Code turns a Stop hook of a skill into SubagentStop inside of a subagent."""
    add(project, "One")
    agent(project, session_of("claude-subagentstop")).ok("start")

    assert replay(ring, project, "claude-subagentstop", "stop").silent

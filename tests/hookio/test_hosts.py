"""What real clients have sent, replayed through the executables, or in this process as they would.

tests/hosts/payloads/HOST-EVENT.json are recordings of Claude Code 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0
and Copilot CLI 1.0.102; only their paths were shortened.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from harness_lib.system import flock
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.hookio.conftest import CHECKOUT, EVENTS, Heard, Ring
from tests.hookio.lists import CHECKS, ME, SESSION, make, note

RECORDINGS = Path(__file__).parents[1] / "hosts/payloads"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.json"))
ONE = Task("task-001", "One")


def load(name: str) -> dict[str, Any]:
    recording = json.loads((RECORDINGS / f"{name}.json").read_text())
    assert isinstance(recording, dict)
    return recording


def called(*words: str) -> list[str]:
    return [name for name in NAMES if any(word in name for word in words)]


def replay(ring: Ring, root: Root, name: str, hook: str, *args: str, **fields: object) -> Heard:
    """Ring `hook` with the recording, which then happened in the project at `root`."""
    return ring(hook, json.dumps({**load(name), "cwd": str(root.path), **fields}).encode(), args=args)


def session_of(name: str) -> str:
    recording = load(name)
    return str(recording.get("session_id", recording.get("sessionId")))


def works(root: Root, name: str, *tasks: Task, **fields: Any) -> None:
    """Let the session of the recording work on a list of `tasks`."""
    make(root, *tasks or (ONE,), sessions=(SESSION._replace(agent_session_id=session_of(name)),), **fields)


def held_by(worker: str) -> Task:
    return ONE._replace(status="in_progress", claimed_by=worker)


@pytest.mark.parametrize(
    ("name", "held", "text"),
    [("task-001", True, "You hold task-001"), ("", False, "validate --all --commit")],
)
def test_copilot_is_let_go_while_its_checks_run_in_the_background(
    hook: Ring, root: Root, name: str, held: bool, text: str
) -> None:
    """It puts a command there after 30 seconds, wakes its agent at the end, and tells its hook neither."""
    session = CHECKS._replace(agent_session_id=session_of("copilot-stop"))
    make(root, held_by(session.worker) if held else ONE._replace(status="completed"), sessions=(session,))

    with flock.alone(root.logs / name / "finish.lock", make=True):
        assert replay(hook, root, "copilot-stop", "stop", "copilot").silent
        assert replay(hook, root, "copilot-stop", "stop", "gemini").reason
    assert text in replay(hook, root, "copilot-stop", "stop", "copilot").reason


@pytest.mark.parametrize("name", NAMES)
def test_no_recording_is_answered_without_a_list(hook: Ring, tmp_path: Path, home: Path, name: str) -> None:
    data = json.dumps({**load(name), "cwd": str(tmp_path)}).encode()

    assert all(hook(event, data).silent for event in EVENTS)
    assert not list(tmp_path.iterdir())
    assert not (home / "data").exists()


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
def test_only_who_works_is_held(hook: Ring, root: Root, name: str, *, held: bool) -> None:
    works(root, name)
    heard = replay(hook, root, name, "stop")
    assert heard.silent is not held
    assert not held or heard.reason

    make(root, ONE)
    assert replay(hook, root, name, "stop").silent


@pytest.mark.parametrize("name", called("subagentstop"))
def test_a_subagent_is_held_while_it_owns_a_task(hook: Ring, root: Root, name: str) -> None:
    make(root, held_by(load(name)["agent_id"]))
    assert "You hold task-001" in replay(hook, root, name, "subagentstop").reason

    make(root, held_by("another"))
    assert replay(hook, root, name, "subagentstop").silent


@pytest.mark.parametrize("name", called("subagentstart"))
def test_a_subagent_is_told_the_name_by_which_it_is_held(hook: Ring, root: Root, name: str) -> None:
    works(root, name, mode="concurrent")
    output = replay(hook, root, name, "subagentstart").json["hookSpecificOutput"]

    assert output["hookEventName"] == "SubagentStart"
    assert "\n" not in output["additionalContext"]
    assert len(output["additionalContext"]) < 500
    worker, command = shlex.split(output["additionalContext"])[-3:-1]
    assert command == f"{CHECKOUT}/bin/harness"
    make(root, held_by(worker.removeprefix("HARNESS_WORKER_ID=")), mode="concurrent")
    stopped = replay(hook, root, name, "subagentstop", hook_event_name="SubagentStop")
    assert "You hold task-001" in stopped.reason

    works(root, name)
    assert replay(hook, root, name, "subagentstart").silent, "a list for one knows its parent"


@pytest.mark.parametrize("name", called("sessionstart"))
def test_a_new_session_is_told_in_the_words_of_its_host(hook: Ring, root: Root, name: str) -> None:
    make(root, ONE, sessions=())
    host = name.partition("-")[0]

    output = replay(hook, root, name, "sessionstart", host).json

    if host == "copilot":
        assert list(output) == ["additionalContext"]
    else:
        assert output["hookSpecificOutput"]["hookEventName"] == "SessionStart"
        output = output["hookSpecificOutput"]
    assert 'Next: task-001 "One".' in output["additionalContext"]


@pytest.mark.parametrize("name", called("sessionend"))
def test_the_end_of_the_session_that_works_is_noted(hook: Ring, root: Root, name: str) -> None:
    works(root, name)
    before = root.state.read_bytes()

    assert replay(hook, root, name, "sessionend").silent
    assert note(root, "ended", session_of(name)).exists()
    assert root.state.read_bytes() == before


def test_a_host_that_is_named_on_the_command_line_is_answered_in_its_words(ring: Ring, root: Root) -> None:
    make(root, ONE)

    assert list(ring("stop", {"session_id": ME}, args=("cursor",), cwd=root.path).json) == [
        "followup_message"
    ]

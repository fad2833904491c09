"""Stops as each host rings them, and what real clients have sent, replayed: tests/hosts/payloads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness_lib.agents import registry
from harness_lib.hookio import payload
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.hookio.conftest import CHECKOUT, EVENTS, Heard, Ring
from tests.hookio.lists import DONE, HALTED, ME, SESSION, enable_flag, log, make, note

LEFT = Task("a", "Title")
# How each spells a stop; all but the first two are named on the command line of their hook.
HOSTS: dict[str, dict[str, object]] = {
    "claude": {"session_id": ME, "hook_event_name": "Stop", "permission_mode": "default"},
    "codex": {"session_id": ME, "hook_event_name": "Stop", "permission_mode": "default"},
    "gemini": {"session_id": ME, "hook_event_name": "AfterAgent"},
    "copilot": {"sessionId": ME, "hookEventName": "agentStop"},
    "cursor": {"conversation_id": ME, "hook_event_name": "stop"},
    "kimi": {"session_id": ME, "hook_event_name": "Stop"},
}


class Stop(NamedTuple):
    """A list, and the words with which one is held or warned."""

    prepare: Callable[[Root], object]
    held: str = ""
    warned: str = ""


def _of_the_wrong_shape(root: Root) -> None:
    """Write a summary of the right stamp and the wrong shape, which is not expected anywhere."""
    make(root, LEFT)
    root.summary.write_text(json.dumps({**json.loads(root.summary.read_bytes()), "counts": 7}))


# What is decided is decided before the words of a host are chosen: the other stops are in test_visits.py.
STOPS = {
    "work remains": Stop(lambda root: make(root, LEFT), 'Next is a "Title". Type: '),
    "the user must act": Stop(
        lambda root: make(root, LEFT, sessions=(HALTED,)), warned="WARN harness: halted until the user"
    ),
    "nothing is left": Stop(lambda root: make(root, DONE)),
    "a bug of ours": Stop(_of_the_wrong_shape, warned="Stop hook disabled by a bug in it"),
}


def _args(host: str) -> tuple[str, ...]:
    return () if host in ("claude", "codex") else (host,)


def _reason(host: str, heard: Heard) -> str:
    """Return why the agent is held, "" if it is let go; fails unless the host understands exactly that."""
    if host == "kimi" and heard.code == payload.BLOCKED:
        assert heard.out == ""
        return heard.err
    assert heard.code == 0, heard
    if not heard.out:
        return ""
    if host != "cursor":
        return heard.reason
    assert list(heard.json) == ["followup_message"]
    return str(heard.json["followup_message"])


def test_every_host_has_its_stop() -> None:
    assert set(HOSTS) == set(registry.HOSTS)


@pytest.mark.parametrize("row", STOPS, ids=lambda word: word.replace(" ", "-"))
@pytest.mark.parametrize("host", HOSTS)
def test_a_stop_is_answered_in_the_words_of_its_host(
    ring: Ring, hook: Ring, root: Root, host: str, row: str
) -> None:
    """Each host rings the executable for what it holds, Claude Code also for the others."""
    stop = STOPS[row]
    stop.prepare(root)
    said = json.dumps({**HOSTS[host], "cwd": str(root.path)}).encode()

    heard = (ring if "claude" in host or stop.held else hook)("stop", said, args=_args(host))

    reason = _reason(host, heard)
    assert stop.held in reason
    assert bool(reason) is bool(stop.held)
    if not reason:
        assert stop.warned in heard.err
        assert heard.err.count("\n") == bool(stop.warned)
    assert enable_flag(root).exists() is (row != "nothing is left")
    assert any("STATS" in line for line in log(root)) is (row == "nothing is left")
    assert len(list((root.path / ".harness").glob("bug-*.txt"))) == (row == "a bug of ours")


# -- what real clients have sent, replayed through the executables, or in this process as they would
#
# tests/hosts/payloads/HOST-EVENT.json are recordings of Claude Code 2.1.330, Codex 0.169.0, Gemini CLI 0.61.0
# and Copilot CLI 1.0.102; only their paths were shortened.


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


def test_a_subagent_is_not_held_for_its_parent(hook: Ring, root: Root) -> None:
    name = "claude-subagentstop"
    works(root, name, held_by("me"))

    assert replay(hook, root, name, "subagentstop").silent
    # Claude Code turns a Stop hook of a skill into SubagentStop inside of a subagent: the event counts.
    assert replay(hook, root, name, "stop").silent


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


def test_an_idle_teammate_is_held_while_it_owns_a_task(ring: Ring, hook: Ring, root: Root) -> None:
    make(root, ONE)
    assert replay(hook, root, "claude-teammateidle", "teammateidle").silent
    make(root, held_by("worker1"))

    heard = replay(ring, root, "claude-teammateidle", "teammateidle")

    assert (heard.code, heard.out) == (2, "")
    assert "You hold task-001" in heard.err


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

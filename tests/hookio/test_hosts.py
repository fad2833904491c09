"""Twelve stops as each host rings them: the executable, and an answer in the words that this host takes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from harness_lib.agents import registry
from harness_lib.hookio import payload, policy
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.conftest import for_release
from tests.hookio.conftest import HOOKS, Heard, Ring
from tests.hookio.lists import DONE, HALTED, ME, OTHER, SESSION, by_hand, enable_flag, keep, log, make

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
    """A list, what the host says beside the usual, and the words with which one is held or warned."""

    prepare: Callable[[Root], object]
    held: str = ""
    warned: str = ""
    fields: Mapping[str, object] = MappingProxyType({})
    env: Mapping[str, str] = MappingProxyType({})


def _paused(root: Root) -> None:
    make(root, LEFT)
    enable_flag(root).unlink()


def _held_often(root: Root) -> None:
    make(root, LEFT)
    for host in HOSTS:
        keep(root, f"{ME} {' '.join([str(HOOKS), *_args(host)])}", blocks=policy.PATIENCE, progress="3:0 ")


def _misspelt(root: Root) -> None:
    make(root, LEFT)
    root.state.write_text(root.state.read_text("utf-8").replace('"pending"', '"pendign"'), "utf-8")


def _of_the_wrong_shape(root: Root) -> None:
    """Write a summary of the right stamp and the wrong shape, which is not expected anywhere."""
    make(root, LEFT)
    root.summary.write_text(json.dumps({**json.loads(root.summary.read_bytes()), "counts": 7}), "utf-8")


def _list(*tasks: Task, **fields: Any) -> Callable[[Root], object]:
    return lambda root: make(root, *tasks, **fields)


STOPS = {
    "no enable flag": Stop(_paused),
    "switched off": Stop(_list(LEFT), env={"HARNESS_DISABLED": "1"}),
    "no session is open": Stop(_list(LEFT, sessions=())),
    "another agent's is": Stop(_list(LEFT, sessions=(SESSION._replace(agent_session_id=OTHER),))),
    "the legacy made the list": Stop(
        lambda root: by_hand(root, {"id": "a", "status": "pending"}), "Next is a."
    ),
    "a subagent runs": Stop(
        _list(LEFT), fields={"background_tasks": [{"type": "subagent", "status": "running"}]}
    ),
    "the user must act": Stop(_list(LEFT, sessions=(HALTED,)), warned="WARN harness: halted until the user"),
    "work remains": Stop(_list(LEFT), 'Next is a "Title". Type: '),
    "it was held eight times": Stop(_held_often, warned="held 8 times in a row"),
    "the list is broken": Stop(_misspelt, "is 'pendign', must be one of"),
    "nothing is left": Stop(_list(DONE)),
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
    assert len(STOPS) == 12


# What is decided is decided before the words of a host are chosen: the others hold, warn and let go here.
OF_EACH = ("work remains", "the user must act", "nothing is left")
ALL = [(host, row) for row in STOPS for host in HOSTS]
NOW = [(host, row) for host, row in ALL if host == "claude" or row in OF_EACH]


@pytest.mark.parametrize(
    ("host", "row"),
    [*NOW, *for_release(*(pair for pair in ALL if pair not in NOW))],
    ids=lambda word: word.replace(" ", "-"),
)
def test_a_stop_is_answered_in_the_words_of_its_host(
    ring: Ring, hook: Ring, root: Root, host: str, row: str
) -> None:
    """Each host rings the executable for what it holds, Claude Code also for the others of each host."""
    stop = STOPS[row]
    stop.prepare(root)
    said = {**HOSTS[host], "cwd": str(root.path), **stop.fields}

    real = row == "work remains" or (host == "claude" and row in OF_EACH)
    heard = (ring if real else hook)("stop", json.dumps(said).encode(), args=_args(host), env=stop.env)

    reason = _reason(host, heard)
    assert stop.held in reason
    assert bool(reason) is bool(stop.held)
    if not reason:
        assert stop.warned in heard.err
        assert heard.err.count("\n") == bool(stop.warned)
    assert enable_flag(root).exists() is (row not in ("no enable flag", "nothing is left"))
    assert any("STATS" in line for line in log(root)) is (row == "nothing is left")
    assert len(list((root.path / ".harness").glob("bug-*.txt"))) == (row == "a bug of ours")

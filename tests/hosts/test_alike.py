"""What is alike in Claude Code and in Codex: who is held and told, through crashes and compactions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.conftest import for_release
from tests.hosts.agents import DONE, TIRED, launcher, obey, told_name
from tests.hosts.chores import WORK, one_task
from tests.hosts.claude import Claude
from tests.hosts.codex import Codex
from tests.hosts.machine import Machine, Ran
from tests.hosts.model import Model
from tests.hosts.talk import Call, Request, Say, Script


class Client(NamedTuple):
    """One of them, with the skill and its hooks, and what is its own.

    `held` is what the model hears when its agent is sent back, `full` more than it compacts at with the flags
    `compacting`, `delegate` starts a subagent and waits for its end.
    """

    type: Callable[..., Ran]
    run: str
    resume: Callable[[], Ran]
    kill: str
    held: str
    full: int
    compacting: Sequence[str]
    delegate: Callable[[Request, str], Script]

    def times_held(self, model: Model) -> int:
        return sum(self.held in request.last for request in model.requests)


@pytest.fixture(params=["claude", *for_release("codex")])
def client(request: pytest.FixtureRequest) -> Client:
    return _claude(request) if request.param == "claude" else _codex(request)


def _claude(request: pytest.FixtureRequest) -> Client:
    claude: Claude = request.getfixturevalue("claude")
    request.getfixturevalue("with_skill")

    def delegate(_request: Request, prompt: str) -> Script:
        work = {"description": "work", "prompt": prompt, "subagent_type": "general-purpose"}
        yield Say(calls=(Call("Agent", {**work, "run_in_background": False}),))

    def resume() -> Ran:
        return claude("Go on.", "--continue")

    stop = "Stop hook feedback"
    return Client(claude, "/harness run", resume, "kill -9 $CLAUDE_PID", stop, 990_000, [], delegate)


def _codex(request: pytest.FixtureRequest) -> Client:
    codex: Codex = request.getfixturevalue("codex")
    codex.take_skill(request.getfixturevalue("published"))

    def delegate(request: Request, prompt: str) -> Script:
        request = yield Say(calls=(Call("spawn_agent", {"message": prompt}, "multi_agent_v1"),))
        agent = request.last.partition('"agent_id":"')[2].partition('"')[0]
        yield Say(calls=(Call("wait_agent", {"targets": [agent]}, "multi_agent_v1"),))

    def resume() -> Ran:
        return codex("Go on.", before=["resume", "--last"])

    compacting = ["-c", "model_auto_compact_token_limit=100000"]
    run = "$harness:harness run"
    return Client(codex, run, resume, "kill -9 $PPID", "<hook_prompt", 200_000, compacting, delegate)


def _does_it(request: Request) -> Script:
    """Do the task that one holds, to the end of the list."""
    yield request.shell(WORK["task-001"][0])
    yield from obey(request, launcher(request.everything), "finish", WORK)


@pytest.mark.release
def test_a_killed_session_is_resumed(client: Client, model: Model, machine: Machine) -> None:
    """Killed in the middle of a task and resumed, the agent is told, is held, and finishes it."""
    one_task(machine)

    def is_killed(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield request.shell(f"{harness} start && {harness} claim && touch half")
        yield request.shell(f"{harness} checkpoint task-001 1/2 half")
        yield request.shell(client.kill)

    model.play(is_killed)
    client.type(client.run)
    assert machine.statuses == ["in_progress"]

    def resumes(request: Request) -> Script:
        assert 'task-001 "Make one"' in request.everything
        request = yield Say(TIRED)
        assert "task-001" in request.last
        yield from _does_it(request)

    model.play(resumes, when="Go on.")

    client.resume().check()

    assert client.times_held(model) == 1
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_after_a_compaction_the_agent_knows_its_task(client: Client, model: Model, machine: Machine) -> None:
    """When the client has compacted the conversation, the new one knows the list; the agent is still held."""
    one_task(machine)

    def forgets(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield replace(request.shell(f"{harness} start && {harness} claim"), tokens=client.full)
        assert "Make one" not in request.said_by("result"), "it was not compacted"
        assert 'You hold task-001 "Make one"' in request.everything
        request = yield Say(TIRED)
        yield request.shell(WORK["task-001"][0])
        yield from obey(request, harness, "finish", WORK)

    model.play(forgets)

    client.type(client.run, *client.compacting).check()

    assert client.times_held(model) == 1
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_a_subagent_finishes_what_it_has_claimed(client: Client, model: Model, machine: Machine) -> None:
    """A subagent is told its name, sent back to the task it holds under it, and let go when that is done."""
    one_task(machine)
    machine.harness("edit", "--mode", "concurrent").check()
    heard: list[str] = []

    def takes(request: Request) -> Script:
        harness = f"HARNESS_WORKER_ID={told_name(request.everything)} {launcher(request.everything)}"
        yield request.shell(f"{harness} claim")
        request = yield Say(TIRED)
        heard.append(request.last)
        yield request.shell(WORK["task-001"][0])
        yield from obey(request, harness, "finish", WORK)

    def delegates(request: Request) -> Script:
        yield from client.delegate(request, f"TAKE THE TASK with {launcher(request.everything)}")
        yield Say(DONE)

    model.play(delegates)
    model.play(takes, when="TAKE THE TASK")

    assert DONE in client.type(client.run).check().out

    assert [client.held in text and "task-001" in text for text in heard] == [True]
    assert machine.statuses == ["completed"]

"""Codex works on a list: the skill by the real `skills` CLI, `$harness run`, and hooks that hold it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hosts.agents import (
    DONE,
    TIRED,
    follows_the_page,
    idles,
    launcher,
    obey,
    opens_the_page,
    stops_after_each_task,
    told_name,
)
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks
from tests.hosts.talk import Call, Request, Say, Script, says

if TYPE_CHECKING:
    from tests.hosts.codex import Codex
    from tests.hosts.machine import Machine, Ran
    from tests.hosts.model import Model

COMPACTING = ["-c", "model_auto_compact_token_limit=100000"]
FULL = 200_000


@pytest.fixture(autouse=True)
def _skill(codex: Codex, machine: Machine, published: Path) -> None:
    """Install the skill by the real CLI, and the hooks by its own command."""
    machine.skills_add(published)
    harness = machine.project / ".agents" / "skills" / "harness" / "bin" / "harness"
    machine.run(harness, "hooks", "install", "--agent", "codex", env=codex.env).check()


@pytest.mark.release
def test_the_typed_command_brings_the_page(codex: Codex, model: Model, machine: Machine) -> None:
    """`$harness:harness run` puts the whole page into the conversation, from which the list gets done."""
    one_task(machine)
    model.play(follows_the_page(WORK))

    ran = codex("$harness:harness run").check()

    assert "## The loop" in model.requests[0].said_by("user")
    assert DONE in ran.out
    assert _held(model) == 0
    assert machine.statuses == ["completed"]


def test_the_short_name_is_enough(codex: Codex, model: Model, machine: Machine) -> None:
    """`$harness run` names the skill, whose page the agent reads itself; it is held to the end."""
    three_tasks(machine)
    model.play(opens_the_page(stops_after_each_task(WORK)))

    codex("$harness run").check()

    assert_all_done(machine)
    # After the start, the first task, the failed attempt and the second task.
    assert _held(model) == 4


@pytest.mark.release
def test_eight_idle_turns_in_a_row_are_enough(codex: Codex, model: Model, machine: Machine) -> None:
    """Codex itself would go on for ever; the hook lets go at the ninth stop."""
    one_task(machine)
    model.play(idles)

    codex("$harness:harness run").check()

    assert _held(model) == 8
    assert "WARN" in machine.log
    assert machine.statuses == ["pending"]


@pytest.mark.release
def test_another_session_in_a_folder_stops_freely(codex: Codex, model: Model, machine: Machine) -> None:
    """While one session works on the list, another one asks something else and ends at once."""
    one_task(machine)
    others: list[Ran] = []

    def visited(request: Request) -> Script:
        harness = launcher(request.everything)
        yield request.shell(f"{harness} start")
        others.append(codex("SOMETHING ELSE: what day is it?"))
        request = yield Say(TIRED)
        yield from obey(request, harness, "claim", WORK)

    model.play(visited)
    model.play(says("Saturday."), when="SOMETHING ELSE")

    codex("$harness:harness run").check()

    assert "Saturday." in others[0].check().out
    assert len(model.asked("SOMETHING ELSE")) == 1
    assert _held(model) == 1
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_after_a_compaction_the_agent_knows_its_task(codex: Codex, model: Model, machine: Machine) -> None:
    """When the client has compacted the conversation, the new one knows the list; the agent is still held."""
    one_task(machine)

    def forgets(request: Request) -> Script:
        harness = launcher(request.everything)
        request = yield replace(request.shell(f"{harness} start && {harness} claim"), tokens=FULL)
        assert "Make one" not in request.said_by("result"), "it was not compacted"
        assert 'You hold task-001 "Make one"' in request.everything
        request = yield Say(TIRED)
        yield request.shell(WORK["task-001"][0])
        yield from obey(request, harness, "finish", WORK)

    model.play(forgets)

    codex("$harness:harness run", *COMPACTING).check()

    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_a_killed_session_is_resumed(codex: Codex, model: Model, machine: Machine) -> None:
    """Killed in the middle of a task and resumed, the agent is told, is held, and finishes it."""
    one_task(machine)

    def is_killed(request: Request) -> Script:
        harness = launcher(request.everything)
        yield request.shell(f"{harness} start && {harness} claim && touch half")
        yield request.shell("kill -9 $PPID")

    model.play(is_killed)
    codex("$harness:harness run")
    assert machine.statuses == ["in_progress"]

    def resumes(request: Request) -> Script:
        assert 'task-001 "Make one"' in request.everything
        request = yield Say(TIRED)
        assert "task-001" in request.last
        yield request.shell(WORK["task-001"][0])
        yield from obey(request, launcher(request.everything), "finish", WORK)

    model.play(resumes, when="Go on.")

    codex("Go on.", before=["resume", "--last"]).check()

    assert machine.statuses == ["completed"]


def test_a_subagent_finishes_what_it_has_claimed(codex: Codex, model: Model, machine: Machine) -> None:
    """A subagent is told its name, sent back to the task it holds under it, and let go when that is done."""
    one_task(machine)
    machine.harness("edit", "--mode", "concurrent").check()
    held: list[str] = []

    def takes(request: Request) -> Script:
        harness = f"HARNESS_WORKER_ID={told_name(request.everything)} {launcher(request.everything)}"
        yield request.shell(f"{harness} claim")
        request = yield Say(TIRED)
        held.append(request.last)
        yield request.shell(WORK["task-001"][0])
        yield from obey(request, harness, "finish", WORK)

    def delegates(request: Request) -> Script:
        yield from _delegate(request, f"TAKE THE TASK with {launcher(request.everything)}")
        yield Say(DONE)

    model.play(delegates)
    model.play(takes, when="TAKE THE TASK")

    codex("$harness:harness run").check()

    assert ["<hook_prompt" in text and "task-001" in text for text in held] == [True]
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_a_subagent_is_not_held_for_its_parent(codex: Codex, model: Model, machine: Machine) -> None:
    """A subagent of an agent with a task in progress ends at once; the agent itself does not."""
    one_task(machine)

    def delegates(request: Request) -> Script:
        harness = launcher(request.everything)
        yield request.shell(f"{harness} start && {harness} claim")
        yield from _delegate(request, "LOOK IT UP")
        request = yield Say(TIRED)
        yield request.shell(WORK["task-001"][0])
        yield from obey(request, harness, "finish", WORK)

    model.play(delegates)
    model.play(says("It is 42."), when="LOOK IT UP")

    codex("$harness:harness run").check()

    assert len(model.asked("LOOK IT UP")) == 1
    assert _held(model) == 1
    assert machine.statuses == ["completed"]


def _delegate(request: Request, prompt: str) -> Script:
    """Start a subagent and wait for its end."""
    request = yield Say(calls=(Call("spawn_agent", {"message": prompt}, "multi_agent_v1"),))
    agent = request.last.partition('"agent_id":"')[2].partition('"')[0]
    yield Say(calls=(Call("wait_agent", {"targets": [agent]}, "multi_agent_v1"),))


def _held(model: Model) -> int:
    """Return how often the agent was sent back: a hook's prompt stands at the end of a request."""
    return sum("<hook_prompt" in request.last for request in model.requests)

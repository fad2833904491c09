"""An agent that a supervisor started works; to take, end and run tasks is the supervisor's."""

from __future__ import annotations

import re

import pytest

from harness_lib.core import rights
from tests.conftest import CHECKOUT
from tests.verbs.project import Agent, Project, begin

READ = {"status", "show", "log", "report", "graph", "check", "doctor", "budget"}
SUPERVISED = {"HARNESS_SUPERVISED": "task-001"}
REFUSED = (
    "start",
    "claim",
    "finish",
    "fail task-001 --message no",
    "release",
    "stop",
    "recover",
    "retry task-001",
    "accept task-001",
    "return task-001 no",
    "remove task-001",
    "run",
    "run --agent-command true",
    "edit task-002 --validate false",
    "edit --max-sessions 1",
    "import tasks.md",
    "export --tick tasks.md",
    "pause",
    "init",
    "trust --yes",
    "hooks install",
    "check --repair",
    "validate --all --committed",
    "rescue save task-001",
)


@pytest.fixture
def held(agent: Agent) -> Agent:
    """Return an agent that holds the first of two tasks."""
    for title in ("One", "Two"):
        agent.ok("add", title, "--validate", "true")
    agent.ok("claim")
    return agent


def test_what_ends_a_task_is_refused_and_changes_nothing(project: Project, held: Agent) -> None:
    before = project.file.read_bytes()
    for words in REFUSED:
        error = held.fails(2, *words.split(), **SUPERVISED)["error"]
        assert (error["kind"], "End your turn" in error["hint"]) == ("USAGE", True), words
        assert project.file.read_bytes() == before, words


def test_what_helps_the_work_is_not(held: Agent) -> None:
    held.ok("show", "task-001", **SUPERVISED)
    held.ok("validate", "task-001", **SUPERVISED)
    # Only in the sandbox of a run is there no place for its checkout.
    inside = {"HARNESS_SANDBOXED_BY": "bubblewrap"}
    held.ok("validate", "task-001", **inside)
    refused = held.fails(2, "validate", "task-001", **SUPERVISED, **inside)
    assert "Type the check itself" in refused["error"]["hint"]
    for words in ("checkpoint task-001 1/2 half", "note task-001 trap"):
        assert held.ok(*words.split(), **SUPERVISED)["next"] is None
    held.ok("add", "A task that this one found", "--validate", "true", **SUPERVISED)


def test_what_is_not_for_it_is_never_named_as_the_next_command(agent: Agent) -> None:
    """Also where the list has a task that is free: to take it is the supervisor's."""
    for title in ("One", "Two"):
        agent.ok("add", title, "--validate", "true")
    for verb in ("status", "show task-002", "show task-002", "graph", "log", "rescue list"):
        command = agent.ok(*verb.split(), **SUPERVISED)["next"]
        assert command is None or command.split()[1] in rights.FOR_SUPERVISED, verb
        if command is not None:
            agent.ok(*command.split()[1:], **SUPERVISED)


def test_of_a_lost_list_the_repair_is_not_named_either(project: Project, held: Agent) -> None:
    project.file.unlink()
    assert held("check", "--json").json["next"] == "harness check --repair"
    assert held("check", "--json", **SUPERVISED).json["next"] is None


def test_earlier_work_may_be_brought_in_and_not_taken_away(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    agent.finishes({"made": "x\n"}, code=1)
    agent.ok("claim")

    agent.fails(8, "rescue", "drop", "task-001/1", **SUPERVISED)
    agent.ok("rescue", "apply", "task-001/1", **SUPERVISED)

    assert project.read("made") == "x\n"


def test_the_page_names_what_an_agent_of_a_run_may_type() -> None:
    page = (CHECKOUT / "docs/unattended.md").read_text()
    sentence = page.split("It may type ")[1].split(" and the verbs that only read")[0]
    named = {word.split()[0] for word in re.findall(r"`(.*?)`", sentence)}

    assert named == rights.FOR_SUPERVISED - READ - {"add", "beat"}

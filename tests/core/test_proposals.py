"""What an unattended agent adds waits for the user, and runs nothing before one has accepted it."""

from __future__ import annotations

import os

import pytest

from harness_lib.attempts import dialogue
from harness_lib.core import add_tasks
from harness_lib.core.context import Context
from tests.attempts.forbidden_list import forbidden
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project

SUPERVISED = {"HARNESS_SUPERVISED": "task-001"}


@pytest.fixture
def held(agent: Agent) -> Agent:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")
    return agent


def _propose(agent: Agent, title: str, *options: str) -> None:
    agent.ok("add", title, "--validate", f"touch {title}", *options, **SUPERVISED)


def test_a_proposal_is_no_task_until_the_user_accepts_it(project: Project, held: Agent) -> None:
    _propose(held, "Two", "--description", "why", "--depends-on", "task-001", "--priority", "P0")
    _propose(held, "Three")

    assert [task["id"] for task in project.state["tasks"]] == ["task-001"]
    assert "2 proposed by agents" in held("status").out
    (reported,) = [line for line in held("report").out.splitlines() if "2 proposed by agents" in line]
    words = "2 proposed by agents: Two, Three harness add --proposed"
    assert reported.split() == words.split()
    shown = held.ok("add", "--proposed")
    assert [each["number"] for each in shown["proposals"]] == [1, 2]
    assert "touch Two" in shown["message"]
    assert "task-001" in shown["message"]

    reply = held.ok("add", "--proposed", "1")

    task = project.task("task-002")
    assert reply["task"]["id"] == "task-002"
    assert (task["title"], task["description"], task["priority"]) == ("Two", "why", "P0")
    assert (task["depends_on"], task["validation"]["command"]) == (["task-001"], "touch Two")
    assert [each["number"] for each in held.ok("add", "--proposed")["proposals"]] == [2]
    assert project.grep("WARN", "[task-002]", "accepted", "proposed-1")
    held.ok("finish")
    assert held.ok("claim")["task"]["id"] == "task-002"


def test_a_dismissed_one_is_gone(project: Project, held: Agent) -> None:
    _propose(held, "Two")
    held.ok("add", "--proposed", "1", "--dismiss")
    assert "proposals" not in project.state
    assert "proposed by agents" not in held("status").out
    held.fails(2, "add", "--proposed", "1")


def test_no_agent_decides_it(project: Project, held: Agent) -> None:
    _propose(held, "Two")
    before = project.file.read_bytes()
    for env in (SUPERVISED, {"CLAUDECODE": "1"}):
        for more in ([], ["--dismiss"]):
            error = held.fails(8, "add", "--proposed", "1", *more, **env)["error"]
            assert "harness add --proposed 1" in error["hint"]
    assert project.file.read_bytes() == before


def test_the_same_twice_is_one(project: Project, held: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(add_tasks, "MOST_PROPOSALS", 2)
    for title in ("Two", "Two", "Three"):
        _propose(held, title)
    assert len(project.state["proposals"]) == 2
    held.fails(2, "add", "Four", **SUPERVISED)
    held.fails(2, "add", " ", **SUPERVISED)


def test_an_agent_that_may_not_write_the_list_proposes_by_letter(make_project: Make) -> None:
    shared = make_project(mode="concurrent")
    shared.agent("person").ok("add", "One", "--validate", "true")
    place = shared.top.parent / "tree"
    shared.git("worktree", "add", "-q", "-b", "tree", str(place))
    worker = shared.agent("worker", place)
    worker.ok("claim", "task-001")

    with forbidden(shared):
        worker.ok("add", "Two", "--validate", "true", "--protect", "a", "--red-first", **SUPERVISED)
    assert "proposals" not in shared.state
    ctx = Context(env={**os.environ, "HARNESS_WORKER_ID": worker.name}, cwd=worker.cwd)
    assert dialogue.open_all(ctx) == []

    proposal = shared.state["proposals"][0]
    assert (proposal["title"], proposal["validation"]["protect"]) == ("Two", ["a"])
    assert proposal["validation"]["red_first"] is True

"""`harness start` and `claim` open no session where nothing can be gone on with, and say why (exit 9)."""

from __future__ import annotations

import pytest

from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin


def test_an_empty_list_is_done_whoever_asks(project: Project, agent: Agent) -> None:
    """It is not said to be completed."""
    for verb in ("start", "claim"):
        reply = agent.fails(9, verb)

        assert reply["stop"] == {"reason": "done"}
        assert "The list has no tasks yet" in reply["message"]
        assert reply["next"].startswith("harness add ")
    assert project.state["sessions"] == []
    assert not project.enable_flag
    assert len(project.grep(" STATS ")) == 2


def test_a_finished_list_is_exit_9_and_not_5_for_a_second_owner(project: Project, one: Agent) -> None:
    """State first, then eligibility, then the session."""
    one.ok("start")
    project.without_proofs()
    project.edit_task(status="completed")

    project.agent("other").fails(9, "start")


# -- limits


def test_a_session_ends_after_so_many_attempts_failed_ones_count(project: Project, agent: Agent) -> None:
    project.configure(max_tasks_per_session=2)
    for check in ("true", "false", "true"):
        agent.ok("add", "One", "--validate", check)
    agent.ok("claim", "task-001")
    assert agent.ok("finish")["stop"] is None
    agent.ok("claim", "task-002")

    assert agent.fails(1, "finish")["stop"] == {"reason": "max_tasks_per_session"}

    assert agent.fails(9, "claim")["stop"] == {"reason": "max_tasks_per_session"}
    assert project.state["sessions"][0]["halt"] == "max_tasks_per_session"
    agent.ok("stop")
    assert agent.ok("claim")["task"]["id"] == "task-003"


# -- when only the user could go on


@pytest.fixture
def halted(project: Project, agent: Agent) -> Project:
    """Return a project whose one task waits for the user."""
    agent.ok("add", "One", "--validate", "true")
    project.edit_task(halt="CONFIG: say which database")
    return project


def test_with_only_a_halted_task_nobody_is_told_to_wait(halted: Project, agent: Agent) -> None:
    for verb in ("start", "claim"):
        reply = agent.fails(9, verb)

        assert (reply["stop"], reply["next"]) == ({"reason": "waiting"}, "harness show task-001")
        assert "until the user fixes the halted ones" in reply["message"]
        assert "task-001: CONFIG: say which database" in reply["message"]
        assert "others hold" not in reply["message"]
    assert (halted.state["sessions"], halted.state["session_count"]) == ([], 0)


def test_halted_tasks_use_up_no_sessions_and_the_limit_holds(halted: Project, agent: Agent) -> None:
    """An open session ends where only the user could go on."""
    halted.configure(max_sessions=1)
    for _ in range(3):
        agent.fails(9, "start")
    assert halted.state["session_count"] == 0
    halted.edit_task(halt=None)
    assert agent.ok("start")["session"] == 1
    halted.edit_task(halt="CONFIG: say which database")

    assert agent.fails(9, "start")["stop"] == {"reason": "waiting"}

    assert halted.state["sessions"] == []
    agent.fails(9, "start")
    assert halted.state["session_count"] == 1


def test_where_others_hold_the_rest_waiting_is_what_to_type(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    begin(project.agent("first"))

    reply = project.agent("second").ok("start")

    assert reply["next"] == "harness claim --wait 600"
    assert "others hold the rest" in reply["message"]


@pytest.mark.usefixtures("asked_once")
def test_where_no_session_is_left_nobody_is_sent_in_a_circle(agent: Agent) -> None:
    """From reply to reply, `next:` never comes to `start`, which would send the reader back."""
    agent.ok("add", "One", "--validate", "true")
    agent.ok("edit", "--max-sessions", "1")
    agent.ok("start")
    agent.ok("stop")

    for verb in ("stop", "status", "graph", "log", "check", "add Two", "edit task-001 --priority P0"):
        typed: list[str | None] = []
        command: str | None = f"harness {verb}"
        while command is not None and command not in typed:
            typed.append(command)
            command = agent.ok(*command.split()[1:])["next"]
        assert "harness start" not in [*typed, command], verb

    assert "The user can raise it: harness edit --max-sessions N" in agent("status").out
    (closed,) = (line for line in agent("doctor").out.splitlines() if "no session is open" in line)
    assert closed.endswith(" -> harness edit --max-sessions N")
    assert agent.fails(9, "claim")["stop"] == {"reason": "max_sessions"}
    agent.ok("edit", "--max-sessions", "2")
    said = agent.ok("status")
    assert (said["next"], "allow more" in said["message"]) == ("harness start", False)


def test_what_was_interrupted_when_no_session_is_left_does_not_lead_in_a_circle(agent: Agent) -> None:
    begin(agent)
    agent.ok("edit", "--max-sessions", "1")
    assert "task-001 stays in progress" in agent.ok("stop")["message"]

    assert agent.ok("status")["next"] == "harness log"
    assert agent.ok("show", "task-001")["next"] != "harness start"

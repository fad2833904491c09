"""`harness stop` ends a session at any moment, and leaves its work where it is."""

from __future__ import annotations

import pytest

from tests.verbs.project import Agent, Project


@pytest.mark.parametrize("status", ["pending", "failed"])
def test_stop_without_a_session_is_fine_at_any_moment(project: Project, agent: Agent, status: str) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.edit_task(status=status)

    assert "No session" in agent.ok("stop")["message"]
    agent.fails(2, "stop", "--session", "7")


def test_stop_leaves_the_work_in_place_and_the_next_session_recovers_it(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")
    project.put("half", "half\n")

    reply = agent.ok("stop")

    assert "task-001 stays in progress" in reply["message"]
    assert project.state["last_session"]
    assert project.marker
    assert project.read("half") == "half\n"
    assert len(project.grep("[SESSION-1] STATS tasks_total=1 completed=0 failed=0 pending=0")) == 1
    project.put("done")
    assert "mark completed" in agent.fails(9, "start")["recovered"][0]
    assert project.task()["status"] == "completed"
    assert "half" in project.in_commit()


def test_the_run_of_another_machine_is_ended_there_or_by_number(project: Project, agent: Agent) -> None:
    """Nobody here can know whether it lives; a person who does has the last word."""
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    (session,) = project.state["sessions"]
    elsewhere = {"host": "far-away", "worker": f"run-{session['pid']}-0123abcd"}
    agent.die()
    project.edit(sessions=[{**session, **elsewhere}])

    hint = project.agent("other").fails(5, "start")["error"]["hint"]

    assert "Ctrl-C in its terminal on far-away; if it is gone there: harness stop --session 1" in hint
    assert project.agent("person").ok("stop", "--session", "1")["session"] == 1

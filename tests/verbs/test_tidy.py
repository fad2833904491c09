"""`harness tidy`: what would go is shown first; rescued work goes by its age only, and is on record."""

from __future__ import annotations

import os

import pytest

from tests.verbs.project import Agent, Project


def _fail(agent: Agent, project: Project) -> str:
    agent.ok("add", "One", "--validate", "echo no; false")
    agent.ok("claim")
    project.put("try.txt")
    return str(agent.fails(1, "finish")["rescue"])


def test_old_logs_are_shown_first_and_go_when_a_person_says_so(project: Project, agent: Agent) -> None:
    ref = _fail(agent, project)
    log = project.top / ".harness/logs/task-001/1.log"
    os.utime(log, (0, 0))

    shown = agent.ok("tidy")
    assert (shown["logs"], shown["rescues"], log.exists()) == (1, 0, True)
    assert "task-001/1.log" in shown["message"]

    project.agent("person", CLAUDE_PID=None).ok(*shown["next"].split()[1:])
    assert not log.exists()
    assert project.git("rev-parse", ref)


def test_rescued_work_goes_by_the_age_that_is_named_and_its_name_is_on_record(
    project: Project, agent: Agent
) -> None:
    ref = _fail(agent, project)
    oid = project.git("rev-parse", ref)
    person = project.agent("person", CLAUDE_PID=None)

    assert person.ok("tidy", "--rescues", "1", "--yes")["rescues"] == 0
    project.clock.pass_(days=2)
    assert person.ok("tidy", "--rescues", "1", "--yes")["rescues"] == 1

    assert project.refs() == []
    assert project.grep("WARN dropped by hand", ref, oid)
    project.git("update-ref", ref, oid)


def test_logs_of_a_task_that_somebody_works_on_stay(project: Project, agent: Agent) -> None:
    _fail(agent, project)
    os.utime(project.top / ".harness/logs/task-001/1.log", (0, 0))
    agent.ok("claim")

    assert agent.ok("tidy")["logs"] == 0


def test_an_agent_takes_nothing(agent: Agent) -> None:
    assert agent.fails(8, "tidy", "--yes", CLAUDECODE="1")["error"]["kind"] == "REFUSED"


@pytest.mark.parametrize("typed", ["--rescues=-1", "--days=nan", "--megabytes=-1"])
def test_an_age_that_is_none_takes_nothing(project: Project, agent: Agent, typed: str) -> None:
    ref = _fail(agent, project)
    person = project.agent("person", CLAUDE_PID=None)

    flag = typed.partition("=")[0]
    assert flag in person.fails(2, "tidy", typed, "--yes")["error"]["message"]
    assert project.git("rev-parse", ref)
    assert (project.top / ".harness/logs/task-001/1.log").exists()

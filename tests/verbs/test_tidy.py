"""`harness tidy` shows which logs and rescued work would go, and takes them only when the user says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.verbs.project import Agent, Project, lose


@pytest.fixture
def ref(agent: Agent) -> str:
    """Return the ref that keeps the work of a failed attempt."""
    return lose(agent, "try.txt")


@pytest.fixture
def person(project: Project) -> Agent:
    return project.agent("person", CLAUDE_PID=None)


def old_log(project: Project) -> Path:
    """Return the log of the attempt, made as old as can be, and the file by which two `finish` wait."""
    log = project.top / ".harness/logs/task-001/1.log"
    for path in (log, log.with_name("finish.lock")):
        os.utime(path, (0, 0))
    return log


def test_old_logs_go_when_the_user_says_so(project: Project, agent: Agent, person: Agent, ref: str) -> None:
    log = old_log(project)

    shown = agent.ok("tidy")
    assert (shown["logs"], shown["rescues"], log.exists()) == (1, 0, True)
    assert "task-001/1.log" in shown["message"]
    assert agent.fails(8, "tidy", "--yes", CLAUDECODE="1")["error"]["kind"] == "REFUSED"

    person.ok(*shown["next"].split()[1:])
    assert not log.exists()
    assert project.git("rev-parse", ref)


def test_rescued_work_goes_by_its_age_and_stays_on_record(project: Project, person: Agent, ref: str) -> None:
    oid = project.git("rev-parse", ref)

    assert person.ok("tidy", "--rescues", "1")["next"] == "harness status"
    project.clock.pass_(days=2)
    shown = person.ok("tidy", "--rescues", "1")
    assert project.refs() == [ref]
    assert person.ok(*shown["next"].split()[1:])["rescues"] == 1

    assert project.refs() == []
    assert project.grep("WARN dropped by hand", ref, oid)
    project.git("update-ref", ref, oid)


@pytest.mark.usefixtures("ref")
def test_logs_of_a_task_that_somebody_works_on_stay(project: Project, agent: Agent) -> None:
    old_log(project)
    agent.ok("claim")

    assert agent.ok("tidy")["logs"] == 0


def test_an_age_that_is_none_takes_nothing(project: Project, person: Agent, ref: str) -> None:
    for typed in ("--rescues=-1", "--rescues=nan"):
        assert typed.partition("=")[0] in person.fails(2, "tidy", typed, "--yes")["error"]["message"]
    assert project.git("rev-parse", ref)
    assert (project.top / ".harness/logs/task-001/1.log").exists()

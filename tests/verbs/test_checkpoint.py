"""`harness checkpoint` records progress with its evidence, and nothing that is no progress."""

from __future__ import annotations

import pytest

from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project


def test_who_holds_one_task_need_not_name_it(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.fails(2, "checkpoint", "1/2", "nothing is held yet")
    agent.ok("claim")
    agent.ok("checkpoint", "1/2", "half of it")
    assert project.task()["checkpoints"][0]["description"] == "half of it"


def test_it_is_recorded_with_the_content_of_that_moment(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")
    project.put("half.txt", "half\n")
    index = (project.top / ".git" / "index").read_bytes()

    agent.ok("checkpoint", "task-001", "1/3", "half of it")

    point = project.task()["checkpoints"][0]
    assert (point["step"], point["total"], point["description"]) == (1, 3, "half of it")
    assert project.git("show", f"{point['tree']}:half.txt") == "half"
    assert (project.top / ".git" / "index").read_bytes() == index
    assert project.grep('[SESSION-1] CHECKPOINT [task-001] step=1/3 "half of it"')


@pytest.mark.parametrize("step", ["", "1", "1/0", "0/3", "4/3", "a/b", "1/3/5", "-1/3", "1/99999999"])
def test_a_step_that_is_none_is_a_wrong_argument(project: Project, agent: Agent, step: str) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")

    said = agent("checkpoint", "task-001", "--", step, "x")

    assert said.code == 2, said.text
    assert project.task()["checkpoints"] == []


def test_only_for_a_held_task(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")

    agent.fails(2, "checkpoint", "task-001", "1/2", "x")
    agent.fails(2, "checkpoint", "nothing", "1/2", "x")

    assert project.task()["checkpoints"] == []


def test_a_very_long_text_is_cut_and_the_log_line_too(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")

    agent.ok("checkpoint", "task-001", "1/2", "long " * 30000)

    assert len(project.task()["checkpoints"][0]["description"]) <= 1000
    assert max(map(len, project.log)) <= 4000


def test_in_concurrent_mode_it_renews_the_lease(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent = project.agent()
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")
    first = project.task()["lease_expires_at"]
    project.clock.pass_(minutes=20)

    agent.ok("checkpoint", "task-001", "1/2", "x")

    assert project.task()["lease_expires_at"] > first

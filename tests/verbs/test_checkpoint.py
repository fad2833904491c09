"""`harness checkpoint` records progress with the content that it speaks of; `harness beat` renews a lease."""

from __future__ import annotations

from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin

LONG_AGO = "2020-01-01T00:00:00Z"


def test_it_is_recorded_with_the_content_of_that_moment(project: Project, agent: Agent) -> None:
    begin(agent)
    project.put("half.txt", "half\n")
    index = (project.top / ".git" / "index").read_bytes()

    agent.ok("checkpoint", "task-001", "1/3", "half of it")

    point = project.task()["checkpoints"][0]
    assert (point["step"], point["total"], point["description"]) == (1, 3, "half of it")
    assert project.git("show", f"{point['tree']}:half.txt") == "half"
    assert (project.top / ".git" / "index").read_bytes() == index
    assert project.grep('[SESSION-1] CHECKPOINT [task-001] step=1/3 "half of it"')


def test_a_step_that_is_none_is_a_wrong_argument(project: Project, agent: Agent) -> None:
    begin(agent)

    for step in ("", "1", "1/0", "0/3", "4/3", "a/b", "1/3/5", "-1/3", "1/99999999"):
        assert agent("checkpoint", "task-001", "--", step, "x").code == 2, step

    assert project.task()["checkpoints"] == []


def test_only_of_a_held_task_and_who_holds_one_need_not_name_it(project: Project, one: Agent) -> None:
    for named in ((), ("task-001",), ("nothing",)):
        one.fails(2, "checkpoint", *named, "1/2", "x")
    assert project.task()["checkpoints"] == []
    one.ok("claim")

    one.ok("checkpoint", "1/2", "half of it")

    assert project.task()["checkpoints"][0]["description"] == "half of it"


def test_a_very_long_text_is_cut_and_the_log_line_too(project: Project, agent: Agent) -> None:
    begin(agent)

    agent.ok("checkpoint", "task-001", "1/2", "long " * 30000)

    assert len(project.task()["checkpoints"][0]["description"]) <= 1000
    assert max(map(len, project.log)) <= 4000


def test_in_concurrent_mode_it_renews_the_lease(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent = project.agent()
    begin(agent)
    first = project.task()["lease_expires_at"]
    project.clock.pass_(minutes=20)

    agent.ok("checkpoint", "task-001", "1/2", "x")

    assert project.task()["lease_expires_at"] > first


def test_the_holder_renews_its_lease_and_nobody_else_does(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    holder = project.agent("holder")
    begin(holder)
    project.edit_task(lease_expires_at=LONG_AGO)

    assert project.agent("other").ok("beat")["next"] == "harness status"
    assert project.task()["lease_expires_at"] == LONG_AGO
    assert holder.ok("beat")["message"] == "renewed: task-001"
    assert project.task()["lease_expires_at"] > LONG_AGO


def test_a_claim_without_a_lease_stays_without_one(project: Project, agent: Agent) -> None:
    begin(agent)
    before = project.file.read_bytes()

    agent.ok("beat")

    assert project.file.read_bytes() == before

"""A clock that goes wrong, and a stamp from the far future, break nothing."""

from __future__ import annotations

from tests.verbs.conftest import Make
from tests.verbs.project import begin


def test_a_clock_that_goes_backwards_breaks_nothing(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent = project.agent()
    begin(agent)
    agent.ok("add", "Two", "--validate", "false")
    project.clock.pass_(days=-400)

    agent.ok("checkpoint", "task-001", "1/2", "back in time")
    project.put("done")
    agent.ok("finish")
    agent.works(code=1)
    project.clock.pass_(days=-400)
    agent.ok("claim")
    agent.die()
    agent.wake()
    agent.ok("start")

    assert [task["status"] for task in project.state["tasks"]] == ["completed", "failed"]
    assert project.task("task-002")["attempts"] == 2


def test_a_stamp_from_the_far_future_is_only_a_stamp(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent, other = project.agent(), project.agent("other", project.top)
    begin(agent)
    project.edit_task(lease_expires_at="9999-12-31T23:59:59Z", claimed_at="9999-12-31T23:59:59Z")

    other.fails(9, "claim")
    agent.ok("checkpoint", "task-001", "1/2", "x")
    project.put("done")
    agent.ok("finish")

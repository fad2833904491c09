"""A list in which somebody has written that all is completed lets nobody go."""

from __future__ import annotations

from tests.hookio.conftest import CHECKOUT, Ring, add, agent
from tests.verbs.project import Project


def forge(project: Project, **also: object) -> None:
    for task in project.state["tasks"]:
        project.edit_task(task["id"], status="completed", **also)


def test_an_agent_that_writes_completed_into_the_list_is_held(ring: Ring, project: Project) -> None:
    add(project, "One", "Two", check="test -f done")
    agent(project).ok("start")
    forge(project, validation={"command": "true"}, completed_at="2025-07-01T10:00:00Z")

    reason = ring("stop", {}).reason

    assert "0 of 2 tasks are completed" in reason
    assert 'task-001 "One", task-002 "Two"' in reason
    assert "nothing proves" in reason
    assert f"{CHECKOUT}/bin/harness claim" in reason
    assert project.marker
    assert not project.grep("STATS", "completed=2")


def test_and_it_is_held_still_when_another_task_was_honestly_finished(ring: Ring, project: Project) -> None:
    add(project, "One", check="true")
    add(project, "Two", check="test -f done")
    me = agent(project)
    me.ok("claim")
    project.edit_task("task-002", status="completed")
    me.ok("finish")

    assert 'task-002 "Two"' in ring("stop", {}).reason
    assert me.ok("claim")["task"]["id"] == "task-002"
    assert "You hold task-002" in ring("stop", {}).reason


def test_an_agent_that_writes_completed_over_its_own_claim_is_told_to_finish(
    ring: Ring, project: Project
) -> None:
    add(project, "One", check="test -f done")
    agent(project).ok("claim")
    forge(project)

    assert 'You hold task-001 "One"' in ring("stop", {}).reason


def test_it_is_let_go_once_the_checks_have_passed(ring: Ring, project: Project) -> None:
    add(project, "One", check="true")
    me = agent(project)
    me.ok("start")
    forge(project)
    assert ring("stop", {}).reason

    me.fails(9, "claim")
    me.final_check()

    assert ring("stop", {}).silent


def test_a_new_session_is_told_of_it(ring: Ring, project: Project) -> None:
    add(project, "One", check="test -f done")
    forge(project)

    said = ring("sessionstart", {"source": "startup"}).context

    assert 'nothing proves: task-001 "One"' in said


def test_a_teammate_is_kept_where_something_is_to_be_proven(ring: Ring, shared: Project) -> None:
    add(shared, "One", check="test -f done")
    agent(shared).ok("start")
    forge(shared)

    kept = ring("teammateidle", {"teammate_name": "w1"})

    assert kept.code == 2
    assert "task-001" in kept.err

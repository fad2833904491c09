"""The Stop hook: it holds exactly the session that works on the list, and lets it go in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hookio.conftest import CHECKOUT, OTHER, Ring, add, agent, worktree
from tests.verbs.project import Project


def test_without_a_list_it_is_silent(ring: Ring, tmp_path: Path) -> None:
    assert ring("stop", {}).silent
    assert not list(tmp_path.iterdir())


def test_without_the_marker_it_is_silent(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    project.agent("person").ok("pause")

    assert ring("stop", {}).silent


@pytest.mark.parametrize(("value", "held"), [("1", False), ("yes", False), ("0", True), ("", True)])
def test_the_switch_silences_it(ring: Ring, project: Project, value: str, *, held: bool) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", {}, env={"HARNESS_DISABLED": value}).silent is not held


def test_nobody_is_held_while_no_session_is_open(ring: Ring, project: Project) -> None:
    add(project, "One")

    assert project.marker
    assert ring("stop", {}).silent


def test_the_session_that_started_is_held_until_the_list_is_finished(ring: Ring, project: Project) -> None:
    add(project, "One", "Two")
    me = agent(project)
    me.ok("start")
    assert "0 of 2 tasks are completed" in ring("stop", {}).reason

    for _ in range(2):
        task = me.ok("claim")["task"]["id"]
        assert f"You hold {task}" in ring("stop", {}).reason
        project.put(task)
        me("finish")

    assert "validate --all --committed" in ring("stop", {}).reason
    me("validate", "--all", "--committed")
    assert ring("stop", {}).silent


def test_it_lets_go_while_background_work_is_running(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    task = {"id": "a1", "type": "subagent", "status": "running"}

    assert ring("stop", {"background_tasks": [task]}).silent
    assert ring("stop", {"background_tasks": [{**task, "status": "completed"}]}).reason


def test_background_work_of_an_unknown_kind_is_waited_for_once(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    running = {"background_tasks": [{"id": "x", "type": "dream", "status": "running"}]}

    assert ring("stop", running).silent
    assert ring("stop", running).reason
    assert ring("stop", running).reason


def test_a_server_that_an_agent_has_started_does_not_let_it_go(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", {"background_tasks": [{"id": "b", "type": "shell", "status": "running"}]}).reason


def test_a_halted_session_is_let_go_and_warned_of_once(ring: Ring, project: Project) -> None:
    project.agent("person").ok("add", "No check")
    me = agent(project)
    me.ok("start")
    me.ok("claim")
    me.fails(3, "finish")

    first, second = ring("stop", {}), ring("stop", {})

    assert first.code == 0
    assert first.out == ""
    assert first.err.startswith("WARN harness: halted until a person has acted")
    assert second.silent
    assert len(project.grep("WARN", "halted")) == 1


def test_whoever_can_only_wait_for_others_is_let_go(ring: Ring, shared: Project) -> None:
    add(shared, "One")
    first = agent(shared)
    first.ok("claim")
    agent(shared, OTHER, worktree(shared)).fails(9, "claim")

    assert ring("stop", {}).reason
    assert ring("stop", {"session_id": OTHER}).silent


def test_an_unreadable_list_holds_once_and_says_how_to_repair_it(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    project.edit_task("task-001", status="almost")

    first, second = ring("stop", {}), ring("stop", {})

    assert "tasks[0].status" in first.reason
    assert f"{CHECKOUT}/bin/harness check" in first.reason
    assert second.out == ""
    assert "cannot be read" in second.err
    assert ring("stop", {"stop_hook_active": True}).silent


def test_an_unreadable_list_holds_nobody_who_does_not_work_on_it(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    project.edit_task("task-001", status="almost")

    assert ring("stop", {"session_id": OTHER}).silent


def test_a_torn_list_is_judged_by_what_it_will_be_restored_from(ring: Ring, project: Project) -> None:
    add(project, "One")
    me = agent(project)
    me.ok("start")
    project.file.write_bytes(project.file.read_bytes()[:50])

    assert "0 of 1 tasks are completed" in ring("stop", {}).reason
    assert me.ok("claim")["task"]["id"] == "task-001"


def test_when_nothing_is_left_the_marker_comes_down(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    project.without_proofs()
    project.edit_task("task-001", status="completed")
    before = project.file.read_bytes()

    assert ring("stop", {}).silent
    assert not project.marker
    assert project.file.read_bytes() == before
    assert project.grep("STATS", "tasks_total=1 completed=1 failed=0 pending=0")


def test_the_summary_and_the_list_itself_give_the_same_answers(ring: Ring, project: Project) -> None:
    add(project, "One", "Two")
    me = agent(project)
    me.ok("start")
    me.ok("claim")
    quick = ring("stop", {}).reason
    quick_start = ring("sessionstart", {}).context
    (project.top / ".harness" / "summary.json").unlink()

    assert ring("stop", {}).reason == quick
    assert ring("sessionstart", {}).context == quick_start

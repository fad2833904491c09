"""In a chat the Stop hook holds until the checks of a finished list have run once more."""

from __future__ import annotations

import json

import pytest

from harness_lib.attempts import committed
from harness_lib.hookio import policy
from tests.hookio.conftest import Ring, add, agent
from tests.verbs.project import Agent, Project

FINAL = "validate --all --committed"


def finished(project: Project, *titles: str) -> Agent:
    """Return the agent that has just finished the last task of the list."""
    add(project, *titles)
    me = agent(project)
    for _ in titles:
        me.ok("claim")
        me.ok("finish")
    return me


def test_each_recheck_is_progress_for_an_agent_that_is_held(
    ring: Ring, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(project, "Two", check="true && true")
    me = finished(project, "One")
    me.ok("claim")
    me.ok("finish")
    for _ in range(policy.PATIENCE):
        assert FINAL in ring("stop", {}).reason
    # Time for one check and no more.
    monkeypatch.setattr(committed, "SLICE_SECONDS", 1.5)
    me.clock.hurry_after = project.top / "tracked.txt"

    assert me.ok("validate", "--all", "--committed")["left"] == 1

    assert FINAL in ring("stop", {}).reason
    assert FINAL in ring("sessionstart", {"source": "compact"}).out
    me.final_check()
    assert ring("stop", {}).silent
    assert not project.marker


def test_an_agent_that_never_runs_it_is_let_go_in_the_end(ring: Ring, project: Project) -> None:
    finished(project, "One")
    for _ in range(policy.PATIENCE):
        assert FINAL in ring("stop", {}).reason
    assert "is let go" in ring("stop", {}).err


def test_a_red_task_holds_the_agent_with_the_command_that_begins_it_anew(
    ring: Ring, project: Project
) -> None:
    add(project, "Stands", check="test -f tracked.txt")
    me = finished(project, "Breaks")
    me.ok("claim")
    me.ok("finish")
    project.git("rm", "-q", "tracked.txt")
    project.commit()

    me.fails(1, "validate", "--all", "--committed")

    assert "retry task-001" in ring("stop", {}).reason
    assert project.marker


@pytest.mark.parametrize("when", ["at the beginning", "afterwards"])
def test_nobody_is_held_for_a_final_check_that_is_not_wanted(ring: Ring, project: Project, when: str) -> None:
    if when == "at the beginning":
        project.agent("person").ok("init", "--no-final-check")
    me = finished(project, "One")
    if when == "afterwards":
        project.agent("person").ok("init", "--no-final-check")

    assert project.state["session_config"]["final_check"] is False
    assert ring("stop", {}).silent
    assert "harness validate --all --committed" in me("status").out


def test_tasks_of_an_earlier_version_hold_nobody(ring: Ring, project: Project) -> None:
    me = finished(project, "One")
    me.ok("stop")
    assert "recheck" not in project.task()

    me.fails(9, "start")

    assert ring("stop", {}).silent
    assert "not re-checked: 1 completed task" in me("status").out


def test_a_list_of_the_prose_is_let_go_when_all_is_completed(ring: Ring, project: Project) -> None:
    """Also where its checks were run on a clean checkout by hand, and one failed there."""
    finished(project, "One").ok("stop")
    check = {"command": "test -f nothing", "timeout_seconds": 300}
    task = {"id": "task-001", "title": "One", "status": "completed", "validation": check}
    project.file.write_text(json.dumps({"version": 2, "tasks": [task]}))
    (project.top / ".harness-active").touch()
    person = project.agent("person")
    person.ok("trust", "--yes", HARNESS_TRUST="1")

    person.fails(1, "validate", "--all", "--committed")

    assert project.task()["recheck"]["passed"] is False
    assert "sessions" not in project.state
    assert ring("stop", {}).silent

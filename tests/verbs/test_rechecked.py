"""What a re-check has found stands in the list, and every verb goes by it, and hooks (tests/hookio)."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.core.context import Context
from tests.attempts.rechecking import break_one, context, done, found
from tests.verbs.project import Agent, Project

AGAIN = "harness validate --all --committed"


@pytest.fixture
def ctx(project: Project, tmp_path: Path) -> Context:
    return context(project, tmp_path / "home")


@pytest.fixture
def red(project: Project, agent: Agent, ctx: Context) -> str:
    """Let task-001 be completed and red; return the commit at which it was found so."""
    return break_one(project, agent, ctx)[:12]


def test_a_red_task_is_named_everywhere_with_what_to_type(agent: Agent, red: str) -> None:
    named = f"red: task-001 One: its check fails at {red}, on a clean checkout: The check failed with exit"

    status = agent.ok("status")
    assert "0 %: 1 of 1 completed, 1 of them red" in status["message"]
    assert f"{named} code 1; then: harness retry task-001" in status["message"]
    check = agent.fails(1, "check")
    assert check["red"] == ["task-001"]
    start = agent.fails(9, "start")
    assert start["stop"] == {"reason": "recheck_failed"}
    assert "its check fails at" in start["message"]
    show = agent.ok("show", "task-001")
    for reply in (show, check):
        assert named in reply["message"]
    assert {reply["next"] for reply in (status, show, check, start)} == {"harness retry task-001"}

    agent.ok("retry", "task-001")
    assert agent.ok("start")["next"] == "harness claim"
    assert "red:" not in agent.ok("status")["message"]
    agent.ok("check")


def test_an_open_session_is_told_to_retry_it_and_not_to_wait_for_others(agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f f")
    agent.ok("add", "Two", "--validate", "test ! -f f")
    agent.ok("start")
    agent.works({"f": "x\n"})
    agent.ok("claim")
    (agent.cwd / "f").unlink()
    agent.ok("finish")
    agent.fails(1, "validate", "--all", "--committed")

    said = agent.ok("start")

    assert said["next"] == "harness retry task-001"
    assert "others hold" not in said["message"]


@pytest.mark.usefixtures("red")
def test_a_session_with_other_work_is_told_of_a_red_task_and_does_not_end_with_its_own(agent: Agent) -> None:
    agent.ok("add", "Two", "--validate", "true")

    started = agent.ok("start")

    assert "red: " in started["message"]
    assert started["task"]["id"] == "task-002"
    finished = agent.works()
    assert (finished["stop"], finished["next"]) == ({"reason": "recheck_failed"}, "harness retry task-001")


def test_a_later_commit_of_the_user_makes_a_red_task_one_that_was_checked_before(
    project: Project, agent: Agent, ctx: Context, red: str
) -> None:
    project.commit("put it back by hand", files={"a": "x\n"})

    status = agent.ok("status")

    assert f"checked: task-001 One: its check fails at {red}" in status["message"]
    assert "there are later commits, so check again" in status["message"]
    assert "red:" not in status["message"]
    assert status["next"] == AGAIN
    agent.ok("check")
    assert agent.fails(9, "start")["next"] == AGAIN
    found(ctx)
    assert "checked:" not in agent.ok("status")["message"]
    assert not project.enable_flag


def test_a_later_commit_makes_a_checked_task_no_worse(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "test -f a", "a")
    commit = project.head[:12]
    found(ctx)
    project.commit("by hand", files={"tracked.txt": "two\n"})

    assert f"re-check: checked at {commit}" in agent.ok("show", "task-001")["message"]
    assert "100 %" in agent.ok("status")["message"]
    agent.ok("check")


def test_what_was_completed_before_re_checks_is_neither_red_nor_held(project: Project, agent: Agent) -> None:
    """And nobody at work is told of it."""
    done(project, agent, "test -f a", "a")

    missing = "not re-checked: 1 completed task. Run the checks on a clean checkout of what is committed: "
    assert f"{missing}{AGAIN}" in agent.ok("status")["message"]
    assert f"not re-checked on a clean checkout; run: {AGAIN}" in agent.ok("show", "task-001")["message"]
    agent.ok("check")
    assert agent.fails(9, "start")["stop"] == {"reason": "done"}
    agent.ok("add", "Two", "--validate", "true")
    agent.ok("start")
    assert "not re-checked" not in agent.ok("status")["message"]


def test_hooks_come_back_for_a_red_task_and_go_with_it(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "test -f a", "a")
    project.git("rm", "-q", "a")
    project.commit("by hand")
    assert not project.enable_flag

    found(ctx)
    assert project.enable_flag
    agent.ok("pause")
    found(ctx)
    assert not project.enable_flag, "the user has switched them off"

    project.commit("by hand", files={"a": "x\n"})
    agent.ok("add", "Two", "--validate", "true")
    agent.works()
    assert project.enable_flag
    found(ctx)
    assert not project.enable_flag


@pytest.mark.release
@pytest.mark.usefixtures("red")
def test_a_repair_that_is_finished_in_a_chat_makes_red_tasks_unknown(project: Project, agent: Agent) -> None:
    agent.ok("add", "Repair", "--validate", "test -f a")
    project.edit_task("task-002", repairs="task-001")
    agent.ok("claim")
    project.put("a")

    assert agent.ok("finish")["stop"] == {"reason": "done"}

    assert "recheck" not in project.task("task-001")

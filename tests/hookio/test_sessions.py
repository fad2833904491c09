"""Hooks beside the verbs that agents type: whom `start`, `claim` and `finish` let be held, and until when."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from harness_lib.attempts import committed
from harness_lib.hookio import policy
from tests.hookio.conftest import LAUNCHER, ME, OTHER, Ring, add, agent, prepare, started
from tests.verbs.project import Agent, Project, Stepping, own_work_tree

FINAL = "validate --all --committed"
NEW = {"source": "startup", "session_id": OTHER}


# -- who is held, and until when


def test_the_session_that_started_is_held_until_the_list_is_finished(hook: Ring, project: Project) -> None:
    add(project, "One", "Two")
    assert project.enable_flag
    assert hook("stop", {}).silent, "nobody is held while no session is open"
    me = agent(project)
    me.ok("start")
    assert "0 of 2 tasks are completed" in hook("stop", {}).reason
    assert hook("stop", {"session_id": OTHER}).silent

    for _ in range(2):
        task = me.ok("claim")["task"]["id"]
        assert f"You hold {task}" in hook("stop", {}).reason
        again = hook("sessionstart", {"source": "compact"}).context
        assert "This agent works on it in session 1." in again
        assert f"You hold {task}" in again
        project.put(task)
        me("finish")

    assert FINAL in hook("stop", {}).reason
    me.final_check()
    assert hook("stop", {}).silent
    assert not project.enable_flag


def test_the_same_session_is_held_wherever_it_works(hook: Ring, project: Project, tmp_path: Path) -> None:
    started(project)
    (project.top / "a/b").mkdir(parents=True)

    elsewhere = f"No verb finds the list from where you are. First: cd {project.top}"
    assert elsewhere not in hook("stop", {}, cwd=project.top / "a/b").reason
    tree = own_work_tree(project, "tree").cwd
    env = {"CLAUDE_PROJECT_DIR": str(project.top)}
    assert "First: cd" not in hook("stop", {}, cwd=tree, env=env).reason
    # Where the agent was started comes first, wherever it has gone since, also where another list is.
    assert elsewhere in hook("stop", {"cwd": str(tmp_path)}, cwd=tmp_path, env=env).reason
    (tmp_path / "harness-tasks.json").write_text("{}")
    assert elsewhere in hook("stop", {"cwd": str(tmp_path)}, cwd=tmp_path, env=env).reason


def test_where_no_further_session_may_start_nobody_is_told_to_start_one(hook: Ring, project: Project) -> None:
    """Stop and `start` must not send an agent back and forth."""
    add(project, "One", "Two")
    project.configure(max_tasks_per_session=1, max_sessions=1)
    me = agent(project)
    me.ok("claim")
    me.ok("finish")

    heard = hook("stop")

    assert f"{LAUNCHER} edit --max-sessions N" in heard.told
    assert "harness start" not in heard.told
    me.ok("stop")
    assert me.fails(9, "start")["stop"] == {"reason": "max_sessions"}


# -- what nothing proves


def forge(project: Project, **also: object) -> None:
    for task in project.state["tasks"]:
        project.edit_task(task["id"], status="completed", **also)


def test_an_agent_that_writes_completed_is_held_until_checks_pass(hook: Ring, project: Project) -> None:
    me = started(project, "One", "Two")
    forge(project, validation={"command": "true"}, completed_at="2025-07-01T10:00:00Z")

    for reason in (hook("stop", {}).reason, hook("sessionstart", {"source": "startup"}).context):
        assert "0 of 2 tasks are completed" in reason
        assert 'without a recorded check: task-001 "One", task-002 "Two"' in reason
    assert f"{LAUNCHER} claim" in hook("stop", {}).reason
    assert project.enable_flag
    assert not project.grep("STATS", "completed=2")

    me.fails(9, "claim")
    me.final_check()
    assert hook("stop", {}).silent


# -- the final check


def finished(project: Project, *titles: str) -> Agent:
    """Return the agent that has just finished the last task of the list."""
    add(project, *titles)
    me = agent(project)
    for _ in project.state["tasks"]:
        me.ok("claim")
        me.ok("finish")
    return me


def test_each_recheck_is_progress(hook: Ring, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    add(project, "Two", check="true && true")
    me = finished(project, "One")
    for _ in range(policy.PATIENCE):
        assert FINAL in hook("stop", {}).reason
    # Time for one check and no more.
    monkeypatch.setattr(committed, "SLICE_SECONDS", 1.5)
    me.clock = Stepping()

    assert me.ok("validate", "--all", "--committed")["left"] == 1

    assert FINAL in hook("sessionstart", {"source": "compact"}).out
    for _ in range(policy.PATIENCE):
        assert FINAL in hook("stop", {}).reason
    assert "is let go" in hook("stop", {}).err, "it never runs the rest"
    me.final_check()
    assert hook("stop", {}).silent
    assert not project.enable_flag


def test_a_red_task_holds_the_agent_with_the_command_to_redo_it(hook: Ring, project: Project) -> None:
    add(project, "Stands", check="test -f tracked.txt")
    me = finished(project, "Breaks")
    project.git("rm", "-q", "tracked.txt")
    project.commit()

    me.fails(1, "validate", "--all", "--committed")

    assert "retry task-001" in hook("stop", {}).reason
    assert project.enable_flag


def test_tasks_of_an_earlier_version_hold_nobody(hook: Ring, project: Project) -> None:
    me = finished(project, "One")
    me.ok("stop")
    assert "recheck" not in project.task()

    me.fails(9, "start")

    assert hook("stop", {}).silent
    assert "not re-checked: 1 completed task" in me("status").out


# -- the agent before


@pytest.mark.parametrize("end", ["kill -9", "other", "clear"])
def test_an_agent_hears_what_a_dead_one_left_and_what_to_do(hook: Ring, project: Project, end: str) -> None:
    before = started(project, "One", "Two")
    before.ok("claim")
    beside = hook("sessionstart", NEW).context
    assert f'Another agent works on it ("{ME}"); leave its tasks alone.' in beside
    assert "You hold" not in beside
    if end == "kill -9":
        before.die()
    else:
        assert hook("sessionend", {"reason": end, "session_id": ME}).silent

    context = hook("sessionstart", NEW).context

    assert "Another agent" not in context
    assert "Session 1 was cut off" in context
    assert 'Interrupted: task-001 "One".' in context
    assert f"{LAUNCHER} start" in context


def test_a_cleared_conversation_holds_nothing_against_the_next_one_of_its_process(project: Project) -> None:
    """Also where no hook is installed: Claude Code has one conversation at a time."""
    before = started(project)
    before.ok("claim", CLAUDECODE="1")
    after = agent(project, OTHER)
    after.die()
    after.process = before.process

    assert after.ok("start", CLAUDECODE="1")["session"] == 2


def test_a_session_that_has_ended_keeps_nobody_waiting(hook: Ring, project: Project) -> None:
    """Its process lives on: `/clear` ends a session of Claude Code, and not the program."""
    started(project).ok("claim")
    second = agent(project, OTHER)
    second.fails(5, "start")

    assert hook("sessionend", {"reason": "clear"}).silent
    second.ok("start")

    assert [each["worker"] for each in project.state["sessions"]] == [OTHER]
    assert project.grep("WARN", "its agent has ended")


def test_a_session_that_was_resumed_has_not_ended(hook: Ring, project: Project) -> None:
    first = started(project)
    hook("sessionend", {"reason": "other"})
    hook("sessionstart", {"source": "resume"})

    agent(project, OTHER).fails(5, "start")
    assert hook("stop", {}).reason
    assert first.ok("claim")["session"] == 1


def test_an_end_from_before_the_session_is_not_its_own(hook: Ring, project: Project) -> None:
    me = started(project)
    hook("sessionend", {"reason": "other"})
    me.ok("stop")
    note = next((project.top / ".harness/ended").iterdir())
    old = time.time() - 100
    me.ok("start")
    os.utime(note, (old, old))

    agent(project, OTHER).fails(5, "start")


def test_a_command_of_the_holder_renews_its_lease(hook: Ring, project: Project, home: Path) -> None:
    prepare(home / "data/harness")
    project.configure(concurrency_mode="concurrent")
    add(project, "One")
    agent(project).ok("claim")
    project.edit_task("task-001", lease_expires_at="2020-01-01T00:00:00Z")

    assert hook("posttooluse", {"tool_name": "Bash"}).silent

    # The beat is a process that nobody waits for; pytest's own deadline ends a wait in vain.
    while project.task()["lease_expires_at"].startswith("2020"):
        time.sleep(0.05)

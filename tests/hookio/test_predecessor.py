"""What a new agent hears of the one before it: gone, cut off, cleared, forked, or still at work."""

from __future__ import annotations

import pytest

from tests.hookio.conftest import CHECKOUT, ME, OTHER, Ring, add, agent
from tests.verbs.project import Project

NEW = {"source": "startup", "session_id": OTHER}


@pytest.mark.parametrize("end", ["kill -9", "other", "clear", "prompt_input_exit"])
def test_of_a_dead_predecessor_it_hears_what_was_interrupted_and_what_to_type(
    ring: Ring, project: Project, end: str
) -> None:
    add(project, "One", "Two")
    before = agent(project)
    before.ok("claim")
    if end == "kill -9":
        before.die()
    else:
        assert ring("sessionend", {"reason": end, "session_id": ME}).silent

    context = ring("sessionstart", NEW).context

    assert "Another agent" not in context
    assert "Session 1 was cut off" in context
    assert 'Interrupted: task-001 "One".' in context
    assert f"{CHECKOUT}/bin/harness start" in context


def test_beside_a_living_agent_only_the_task_of_the_dead_is_interrupted(ring: Ring, shared: Project) -> None:
    add(shared, "One", "Two")
    lives, dies = agent(shared), agent(shared, "dead", shared.top)
    dies.ok("claim")
    lives.ok("start")
    dies.die()

    context = ring("sessionstart", NEW, cwd=shared.top).context

    assert f'Another agent works on it ("{ME}")' in context
    assert 'Interrupted: task-001 "One".' in context


def test_a_fork_holds_nothing_of_its_parent(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("claim")

    fork = {"source": "fork", "session_id": OTHER}
    context = ring("sessionstart", fork, env={"HARNESS_WORKER_ID": ME}).context

    assert "You hold" not in context
    assert f'Another agent works on it ("{ME}"); leave its tasks alone.' in context


def test_the_end_of_an_agent_is_noted_while_the_hooks_are_switched_off(ring: Ring, project: Project) -> None:
    """`harness pause`, `/clear` and `/harness run` in one terminal: the list is not held by its own past."""
    add(project, "One")
    before = agent(project)
    before.ok("claim")
    before.ok("pause")

    assert ring("sessionend", {"reason": "clear", "session_id": ME}).silent

    assert agent(project, OTHER).ok("start")["session"] == 2


def test_a_cleared_conversation_holds_nothing_against_the_next_one_of_its_process(project: Project) -> None:
    """Also where no hook is installed: Claude Code has one conversation at a time."""
    add(project, "One")
    before = agent(project)
    before.ok("claim", CLAUDECODE="1")
    after = agent(project, OTHER)
    after.process.kill()
    after.process.wait()
    after.process = before.process

    reply = after.ok("start", CLAUDECODE="1")

    assert reply["session"] == 2


def test_where_no_further_session_may_start_nobody_is_told_to_start_one(ring: Ring, project: Project) -> None:
    """Stop and `start` must not send an agent back and forth."""
    add(project, "One", "Two")
    project.configure(max_tasks_per_session=1, max_sessions=1)
    me = agent(project)
    me.ok("claim")
    me.ok("finish")

    heard = ring("stop")

    assert (heard.code, heard.out) == (0, "")
    assert "harness edit --max-sessions N" in heard.err
    assert "harness start" not in heard.err
    me.ok("stop")
    assert me.fails(9, "start")["stop"] == {"reason": "max_sessions"}

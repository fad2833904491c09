"""The Stop hook lets go of whoever gets nowhere, and keeps nothing of who has left."""

from __future__ import annotations

import pytest

from tests.hookio.conftest import ME, OTHER, Ring, add, agent, worktree
from tests.hookio.tallies import kept
from tests.verbs.project import Project


def test_eight_blocks_in_a_row_without_progress_are_enough(ring: Ring, project: Project) -> None:
    add(project, "One")
    me = agent(project)
    me.ok("start")
    for _ in range(8):
        assert ring("stop", {"stop_hook_active": True}).reason

    released, after = ring("stop", {}), ring("stop", {})

    assert "held 8 times in a row" in released.err
    assert released.out == ""
    assert after.silent
    assert len(project.grep("WARN", "held 8 times")) == 1

    me.ok("claim")
    assert ring("stop", {}).reason


def test_each_agent_session_has_its_own_patience(ring: Ring, shared: Project) -> None:
    add(shared, "One", "Two", "Three")
    agent(shared).ok("claim")
    other = agent(shared, OTHER, worktree(shared))
    other.ok("claim")
    for _ in range(8):
        assert ring("stop", {}).reason

    # What the other one does is no progress of ours, and our idleness is not the other's.
    other.ok("checkpoint", "task-002", "1/2", "half")
    assert ring("stop", {}).out == ""
    assert ring("stop", {"session_id": OTHER}).reason


def test_whoever_comes_back_is_held_again(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")
    for _ in range(9):
        ring("stop", {})
    assert ring("stop", {}).silent

    ring("sessionstart", {"source": "compact"})
    assert ring("stop", {}).silent
    ring("sessionstart", {"source": "resume"})
    assert ring("stop", {}).reason


@pytest.mark.parametrize("session_id", [ME, None])
def test_nothing_is_kept_of_an_agent_that_has_left(
    ring: Ring, project: Project, session_id: str | None
) -> None:
    add(project, "One")
    agent(project).ok("start")
    assert ring("stop", {"session_id": session_id}).reason
    assert kept(project)

    ring("sessionend", {"session_id": session_id, "reason": "other"})
    assert not kept(project)


def test_nothing_is_kept_of_a_subagent_that_was_let_go(ring: Ring, shared: Project) -> None:
    add(shared, "One")
    mate = shared.agent("mate")
    mate.ok("claim")
    assert ring("subagentstop", {"agent_id": "mate"}).reason
    assert kept(shared)

    mate.ok("release")
    assert ring("subagentstop", {"agent_id": "mate"}).silent
    assert not kept(shared)

"""The five stopping conditions of the protocol: each ends the session with counts and a reason (exit 9)."""

from __future__ import annotations

import pytest

from tests.verbs.project import Agent, Project

TOTALS = "tasks_total={} completed={} failed={} pending={} blocked={}"


@pytest.fixture
def two(project: Project, agent: Agent) -> Project:
    """Return a project with a task that passes and one that never does, which has a single attempt."""
    agent.ok("add", "Passes", "--validate", "true")
    agent.ok("add", "Never", "--validate", "false", "--max-attempts", "1", "--depends-on", "task-001")
    return project


def stats(project: Project) -> list[str]:
    """Return the lines with numbers, without stamp, session and type."""
    return [line.split(" STATS ")[1] for line in project.grep(" STATS ")]


def test_all_that_remain_have_failed_for_good_or_are_blocked(two: Project, agent: Agent) -> None:
    """Also those that wait for them are then failed, and say for whom they waited."""
    agent.ok("add", "Waits", "--validate", "true", "--depends-on", "task-002")
    agent.works()
    agent.works(code=1)
    assert agent.final_check()["stop"] == {"reason": "blocked"}

    assert two.task("task-003")["error_log"] == ["[DEPENDENCY] Blocked by failed task-002"]
    assert stats(two)[-1].startswith(TOTALS.format(3, 1, 2, 0, 0))
    assert two.state["sessions"] == []
    assert not two.enable_flag
    assert agent.fails(9, "claim")["stop"] == {"reason": "blocked"}


def test_the_list_has_had_as_many_sessions_as_it_may(two: Project, agent: Agent) -> None:
    """All of them run, the last one too; one more is not counted and leaves its numbers."""
    two.configure(max_sessions=2)
    for number in (1, 2):
        assert agent.ok("start")["session"] == number
        agent.ok("stop")
    before = len(stats(two))

    assert agent.fails(9, "start")["stop"] == {"reason": "max_sessions"}

    assert len(stats(two)) == before + 1
    assert two.state["session_count"] == 2
    assert two.state["sessions"] == []
    assert two.enable_flag


def test_the_user_interrupts_in_the_middle_of_a_task(two: Project, agent: Agent) -> None:
    """Numbers and `last_session` are written, the work stays in place, and the next session picks it up."""
    two.configure(max_sessions=0)
    agent.ok("edit", "task-001", "--validate", "test -f work.txt")
    agent.ok("claim")
    two.put("work.txt")

    agent.ok("stop")

    assert stats(two)[-1].endswith("in_progress=1")
    assert two.state["last_session"]
    assert two.enable_flag
    assert two.task()["status"] == "in_progress"
    assert agent.ok("start")["task"]["id"] == "task-001"
    agent.ok("finish")
    assert two.task()["status"] == "completed"
    assert "work.txt" in two.in_commit()


def test_no_session_is_counted_but_at_its_start_and_only_its_end_is_noted(two: Project, agent: Agent) -> None:
    def facts() -> tuple[int, bool]:
        return two.state["session_count"], two.state["last_session"] is not None

    assert facts() == (0, False)
    agent.ok("start")
    assert facts() == (1, False)
    agent.ok("start")
    agent.ok("claim")
    agent.ok("checkpoint", "task-001", "1/1", "done")
    agent.ok("finish")
    assert facts() == (1, False)
    agent.ok("stop")
    assert facts() == (1, True)
    first_end = two.state["last_session"]
    two.clock.pass_(minutes=1)
    agent.ok("start")
    assert facts() == (2, True)
    assert two.state["last_session"] == first_end
    assert two.grep("[SESSION-2] LOCK acquired")

"""`harness retry`: a new start, for the task and for what it had blocked."""

from __future__ import annotations

from tests.verbs.project import Agent, Project


def _fail(agent: Agent, task_id: str) -> None:
    agent.ok("claim", task_id)
    agent.fails(1, "finish")


def test_a_task_that_failed_for_good_gets_its_attempts_back_and_keeps_its_errors(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "First", "--validate", "false", "--max-attempts", "1")
    _fail(agent, "task-001")
    assert not project.marker
    said = agent.ok("retry", "task-001")
    task = project.task()
    assert (task["status"], task["attempts"]) == ("pending", 0)
    assert len(task["error_log"]) == 1
    assert said["message"] == "task-001 is pending again with 1 attempt (it was failed)."
    assert said["next"] == "harness start"
    assert project.marker
    assert project.grep("WARN [task-001] reset by hand:")
    agent.ok("claim", "task-001")


def test_the_number_of_all_attempts_never_falls(project: Project, agent: Agent) -> None:
    for title in ("First", "Second"):
        agent.ok("add", title, "--validate", "false", "--max-attempts", "1")
    _fail(agent, "task-001")
    _fail(agent, "task-002")

    agent.ok("retry", "task-001")
    agent.ok("remove", "task-002")
    _fail(agent, "task-001")

    agent("stop")
    assert project.grep("STATS", "attempts_total=3")[-1] == project.grep("STATS")[-1]


def test_what_it_had_blocked_is_revived_with_it(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "false", "--max-attempts", "1")
    agent.ok("add", "Second", "--validate", "true", "--depends-on", "task-001")
    agent.ok("add", "Third", "--validate", "true", "--depends-on", "task-002")
    agent.ok("add", "Alone", "--validate", "false", "--max-attempts", "1")
    _fail(agent, "task-001")
    _fail(agent, "task-004")
    agent.fails(9, "claim")
    assert project.task("task-003")["status"] == "failed"
    said = agent.ok("retry", "task-001")
    assert said["revived"] == ["task-002", "task-003"]
    assert [task["status"] for task in project.state["tasks"]] == ["pending"] * 3 + ["failed"]
    assert project.task("task-003")["error_log"] == []


def test_a_diamond_of_blocked_tasks_is_revived_whole_and_each_task_once(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "Top", "--validate", "false", "--max-attempts", "1")
    agent.ok("add", "Left", "--validate", "true", "--depends-on", "task-001")
    agent.ok("add", "Right", "--validate", "true", "--depends-on", "task-001")
    agent.ok("add", "Bottom", "--validate", "true", "--depends-on", "task-002", "--depends-on", "task-003")
    _fail(agent, "task-001")
    agent.fails(9, "claim")
    assert [task["status"] for task in project.state["tasks"]] == ["failed"] * 4

    said = agent.ok("retry", "task-001")

    assert said["revived"] == ["task-002", "task-003", "task-004"]
    assert [task["status"] for task in project.state["tasks"]] == ["pending"] * 4
    assert len(project.grep("WARN", "reset by", "with task-001")) == 3


def test_a_ring_is_not_revived_and_stays_as_it_was(project: Project, agent: Agent) -> None:
    """Retrying a member names the ring: it would fail again at once."""
    agent.ok("add", "One", "--validate", "true")
    agent.ok("add", "Two", "--validate", "true", "--depends-on", "task-001")
    project.edit_task("task-001", depends_on=["task-002"])
    agent.fails(9, "claim")
    before = project.file.read_bytes()

    assert "task-001 -> task-002 -> task-001" in agent.fails(2, "retry", "task-001")["message"]
    assert project.file.read_bytes() == before


def test_what_another_failure_blocks_too_stays_failed(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "false", "--max-attempts", "1")
    agent.ok("add", "Second", "--validate", "false", "--max-attempts", "1")
    agent.ok("add", "Both", "--validate", "true", "--depends-on", "task-001", "--depends-on", "task-002")
    _fail(agent, "task-001")
    _fail(agent, "task-002")
    agent.fails(9, "claim")
    said = agent.ok("retry", "task-001")
    assert said["revived"] == []
    assert project.task("task-003")["status"] == "failed"


def test_a_task_that_would_fail_again_at_once_is_not_reset_and_the_cause_is_named(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "First", "--validate", "false", "--max-attempts", "1")
    agent.ok("add", "Second", "--validate", "true", "--depends-on", "task-001")
    _fail(agent, "task-001")
    agent.fails(9, "claim")
    before = project.file.read_bytes()
    assert "task-001" in agent.fails(2, "retry", "task-002")["message"]
    assert project.file.read_bytes() == before


def test_a_completed_task_can_be_done_again(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok("claim")
    agent.ok("finish")
    agent.ok("retry", "task-001")
    task = project.task()
    assert (task["status"], task["completed_at"]) == ("pending", None)
    agent.ok("claim")
    agent.ok("finish")


def test_a_task_in_progress_is_refused_and_keeps_its_work(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok("claim")
    project.put("made.txt")
    before = project.file.read_bytes()
    said = project.agent("person").fails(8, "retry", "task-001")
    assert "harness release task-001" in said["error"]["hint"]
    assert project.file.read_bytes() == before


def test_a_task_as_good_as_new_is_left_alone(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    before = project.file.read_bytes()
    assert "as good as new" in agent.ok("retry", "task-001")["message"]
    assert project.file.read_bytes() == before

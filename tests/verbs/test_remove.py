"""`harness remove`: a task goes, and nothing that needs it."""

from __future__ import annotations

from tests.verbs.project import Agent, Project


def test_a_task_goes_and_the_list_before_is_kept(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok("add", "Second", "--validate", "true")
    before = project.file.read_bytes()
    said = agent.ok("remove", "task-001")
    assert [task["id"] for task in project.state["tasks"]] == ["task-002"]
    assert said["task"]["title"] == "First"
    assert (project.top / "harness-tasks.json.bak").read_bytes() == before
    assert project.grep('WARN [task-001] removed by hand: "First" (pending)')
    assert project.marker


def test_the_last_task_takes_the_marker_with_it(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok("remove", "task-001")
    assert not project.marker


def test_a_task_that_others_wait_for_stays_and_they_are_named(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    for number in range(7):
        agent.ok("add", f"Then {number}", "--depends-on", "task-001")
    message = agent.fails(8, "remove", "task-001")["message"]
    assert "task-002" in message
    assert "and 2 more" in message
    assert project.task("task-001")


def test_a_task_in_progress_stays(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok("claim")
    said = project.agent("person").fails(8, "remove", "task-001")
    assert "harness release task-001" in said["error"]["hint"]
    assert project.task("task-001")["status"] == "in_progress"


def test_the_rescued_work_of_a_removed_task_stays(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "false")
    agent.ok("claim")
    project.put("made.txt")
    agent.fails(1, "finish")
    agent.ok("remove", "task-001")
    assert project.refs() == ["refs/harness/rescue/task-001/1"]

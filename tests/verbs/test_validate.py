"""`harness validate`: what the checks say now, and nothing recorded."""

from __future__ import annotations

from tests.verbs.project import Agent, Project


def test_a_check_is_run_and_nothing_is_recorded(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok("add", "Second", "--validate", "echo the reason; false")
    before = project.file.read_bytes(), project.log, project.head
    assert agent.ok("validate", "task-001")["task"]["status"] == "pending"
    said = agent.fails(1, "validate", "task-002")
    assert "the reason" in said["message"]
    assert said["ok"] is False
    assert (project.file.read_bytes(), project.log, project.head) == before


def test_all_checks_are_run_and_those_that_do_not_pass_are_told(agent: Agent) -> None:
    agent.ok("add", "Good", "--validate", "true")
    agent.ok("add", "Bad", "--validate", "echo why; false")
    agent.ok("add", "None")
    agent.ok("add", "Nowhere", "--validate", "true", "--cwd", "no/such/place")
    agent.ok("add", "Absent", "--validate", "no-such-command-anywhere --x")
    said = agent.fails(1, "validate", "--all")
    verdicts = {each["id"]: each["verdict"] for each in said["results"]}
    assert verdicts == {
        "task-002": "TEST_FAIL",
        "task-003": "no check",
        "task-004": "CONFIG",
        "task-005": "ENV_SETUP",
    }
    assert (said["passed"], said["not_passed"]) == (1, 4)
    assert "why" in said["message"]


def test_all_pass_is_exit_0_and_an_empty_list_too(agent: Agent) -> None:
    assert agent.ok("validate", "--all")["passed"] == 0
    agent.ok("add", "Good", "--validate", "true")
    assert agent.ok("validate", "--all")["passed"] == 1


def test_a_single_check_that_cannot_run_says_whose_fault_it_is(agent: Agent) -> None:
    agent.ok("add", "None")
    agent.ok("add", "Absent", "--validate", "no-such-command-anywhere --x")
    agent.fails(3, "validate", "task-001")
    agent.fails(7, "validate", "task-002")
    agent.fails(2, "validate")
    agent.fails(2, "validate", "task-001", "--all")


def test_what_a_check_changed_is_told_and_left_so(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "echo changed > tracked.txt; echo new > made.txt")
    said = agent.ok("validate", "task-001")
    assert said["changed"] == ["tracked.txt"]
    assert "tracked.txt" in said["warnings"][0]
    assert project.read("tracked.txt") == "changed\n"


def test_a_hundred_failures_are_told_in_a_few_lines(project: Project, agent: Agent) -> None:
    agent.ok("add", "First")
    task = project.task()
    project.edit(tasks=[{**task, "id": f"t{n}"} for n in range(100)])
    said = agent.fails(1, "validate", "--all")
    assert said["not_passed"] == 100
    assert len(said["message"].splitlines()) < 30
    assert len(said["results"]) == 20

"""`harness show` and `harness pause`: look at one task, switch the hooks off."""

from __future__ import annotations

from tests.ops.project import Agent, Project


def test_everything_about_a_task_is_shown(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok(
        *("add", "Second", "--description", "line one\nline two", "--validate", "echo no; false"),
        *("--protect", "exam.txt", "--cleanup", "true", "--priority", "P0"),
    )
    agent.ok("claim", "task-002")
    agent.ok("checkpoint", "task-002", "1/2", "half of it")
    project.put("made.txt")
    agent.fails(1, "finish")
    said = agent.ok("show", "task-002")
    assert said["task"] == project.task("task-002")
    assert said["rescues"] == ["refs/harness/rescue/task-002/1"]
    assert said["check_log"].endswith("task-002/1.log")
    for text in ("line one", "line two", "echo no; false", "1/2 half of it", "TEST_FAIL", "exam.txt", "P0"):
        assert text in said["message"]
    assert said["next"] == "harness claim task-002"


def test_a_task_in_progress_shows_who_has_it(agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    agent.ok("claim")
    assert f"claimed by {agent.name}" in agent.ok("show", "task-001")["message"]


def test_long_and_hostile_texts_are_cut_and_made_harmless(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--description", "\x1b[2Jx\n" * 1000, "--validate", "true")
    project.edit_task(error_log=["[TEST_FAIL] " + "e" * 490] * 500)
    said = agent("show", "task-001")
    assert said.code == 0
    assert "\x1b" not in said.out
    assert len(said.out) < 20_000


def test_showing_changes_nothing(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    before = project.file.read_bytes(), project.log
    agent.ok("show", "task-001")
    agent.fails(2, "show", "task-404")
    assert (project.file.read_bytes(), project.log) == before


def test_pause_removes_the_marker_and_start_puts_it_back(project: Project, agent: Agent) -> None:
    agent.ok("add", "First", "--validate", "true")
    before = project.file.read_bytes(), project.log
    agent.ok("pause")
    assert not project.marker
    assert "off already" in agent.ok("pause")["message"]
    assert (project.file.read_bytes(), project.log) == before
    agent.ok("start")
    assert project.marker

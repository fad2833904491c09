"""`harness show` and `harness pause`: look at one task, switch the hooks off."""

from __future__ import annotations

import pytest

from tests.verbs.project import Agent, Project, begin


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


def test_a_completed_task_tells_its_commit_its_files_and_how_to_undo_it(
    project: Project, agent: Agent
) -> None:
    begin(agent)
    project.put("done")
    agent.ok("finish")

    reply = agent.ok("show", "1")

    commit = project.head[:12]
    assert reply["task"]["id"] == "task-001"
    assert f"git show {commit}" in reply["message"]
    assert "done" in reply["files"]
    assert f"git revert {commit}" in reply["message"]
    assert "harness retry task-001" in reply["message"]
    project.git(*reply["undo"].split()[1:], "--no-edit")
    assert not (project.top / "done").exists()


def test_commits_of_its_own_are_undone_together_and_no_others(project: Project, agent: Agent) -> None:
    for title in ("One", "Two"):
        agent.ok("add", title, "--validate", f"test -f {title}")
    agent.ok("claim")
    project.put("One")
    agent.ok("finish")
    agent.ok("claim")
    project.put("part")
    project.commit("A part of it")
    project.put("Two")
    agent.ok("finish")

    reply = agent.ok("show", "task-002")

    assert sorted(reply["files"]) == ["Two", "part"]
    assert len(reply["commits"]) == 2
    project.git(*reply["undo"].split()[1:], "--no-edit")
    assert sorted(project.files) == ["One", "tracked.txt"]


def test_one_that_committed_nothing_says_so(agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("finish")
    assert "committed nothing" in agent.ok("show", "1")["message"]


@pytest.mark.parametrize("began", ["on it", "before it"])
def test_a_commit_stays_its_tasks_own_where_a_later_one_committed_nothing(
    project: Project, agent: Agent, began: str
) -> None:
    """A worker of a run begins before the commit of another one, and names that one as its own at the end."""
    base = project.head
    begin(agent)
    project.put("done")
    agent.ok("finish")
    begin(agent, "true")
    agent.ok("finish")
    if began == "before it":
        project.without_proofs()
        project.edit_task("task-002", started_at_commit=base)

    first, second = agent.ok("show", "1"), agent.ok("show", "2")

    assert first["undo"] == f"git revert {project.head[:12]}"
    assert "committed nothing" in second["message"]
    assert second["undo"] is None


def test_a_commit_that_git_has_lost_is_not_here_any_more(project: Project, agent: Agent) -> None:
    begin(agent)
    project.put("done")
    agent.ok("finish")
    lost = project.head
    project.git("reset", "-q", "--hard", "HEAD^")
    project.git("reflog", "expire", "--expire=now", "--all")
    for ref in project.refs("refs/"):
        if not ref.startswith("refs/heads/"):
            project.git("update-ref", "-d", ref)
    project.git("gc", "-q", "--prune=now")
    assert f"its commit {lost[:12]} is not here any more" in agent.ok("show", "1")["message"]


@pytest.mark.parametrize("verb", ["why", "edit", "claim", "finish", "retry", "remove"])
def test_the_number_of_a_task_is_its_name_everywhere(agent: Agent, verb: str) -> None:
    if verb == "finish":
        begin(agent, "true")
    else:
        agent.ok("add", "One", "--validate", "true")
    agent.ok(verb, "1", *(["--title", "Other"] if verb == "edit" else []))
    agent.fails(2, "show", "7")


def test_what_is_typed_next_helps_the_task_that_is_shown(agent: Agent) -> None:
    agent.ok("add", "Never", "--validate", "false", "--max-attempts", "1")
    agent.ok("claim")
    agent.fails(1, "finish")
    assert agent.ok("show", "1")["next"] == "harness retry task-001"

    agent.ok("add", "After it", "--validate", "true", "--depends-on", "task-001")
    assert agent.ok("show", "2")["next"] == "harness retry task-001"


def test_a_number_that_is_far_too_long_is_no_task(agent: Agent) -> None:
    assert "There is no task" in agent.fails(2, "show", "9" * 5000)["error"]["message"]

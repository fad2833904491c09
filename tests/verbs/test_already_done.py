"""A task that needed no work is ended so by `finish --already-done`; `claim` says where that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.verbs.project import Agent, Project, begin

CHECK = "grep -q one tracked.txt"


def test_it_is_completed_with_no_change_and_named(project: Project, agent: Agent) -> None:
    begin(agent, CHECK)
    agent.ok("add", "After", "--validate", "test -f done", "--depends-on", "task-001")
    head = project.git("rev-parse", "HEAD")

    task = agent.ok("finish", "--already-done")["task"]

    assert (task["status"], task["outcome"], task["completed_commit"]) == ("completed", "already_done", head)
    assert task["look_at"] == [
        "task-001 was done already, as its agent says: its check passes, and nothing was changed"
    ]
    assert agent.ok("claim")["task"]["id"] == "task-002"


def test_a_check_that_fails_ends_nothing(project: Project, agent: Agent) -> None:
    begin(agent, "echo looked; test -f done")

    reply = agent.fails(1, "finish", "--already-done")

    assert "task-001 is not done already." in reply["message"]
    assert "looked" in reply["message"]
    assert (project.task()["status"], project.task()["attempts"]) == ("in_progress", 0)


@pytest.mark.parametrize("is_committed", [True, False])
def test_work_that_changed_a_file_is_not_ended_so(project: Project, agent: Agent, is_committed: bool) -> None:
    begin(agent, CHECK)
    project.put("f", "x\n")
    if is_committed:
        project.commit("[task-001] work")

    error = agent.fails(2, "finish", "--already-done")["error"]

    assert "task-001 was not done already: 'f' changed." in error["message"]
    assert not project.task().get("halt")
    assert agent.ok("finish")["task"].get("outcome") is None


def test_what_was_untracked_before_is_no_change(project: Project, agent: Agent) -> None:
    project.put("notes.txt")
    begin(agent, CHECK)

    assert agent.ok("finish", "--already-done")["task"]["outcome"] == "already_done"


def test_what_was_noted_of_an_end_that_was_cut_off_counts_no_longer(project: Project, agent: Agent) -> None:
    begin(agent, CHECK)
    file = project.top / "harness-tasks.json"
    state = json.loads(file.read_text())
    state["tasks"][0]["outcome"] = "already_done"
    file.write_text(json.dumps(state))
    project.put("f", "x\n")

    assert agent.ok("finish")["task"].get("outcome") is None


def test_claim_says_so_where_the_check_has_passed_on_this_commit(
    project: Project, agent: Agent, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    begin(agent, CHECK)
    project.put("f", "x\n")
    agent.ok("finish")
    agent.ok("add", "Same check", "--validate", CHECK)
    agent.ok("add", "Another", "--validate", f"test -f f && echo x >> {ran}")
    agent.ok("add", "Same check, other content", "--validate", CHECK)

    (warning,) = agent.ok("claim")["warnings"]

    assert (
        "The check of task-002 passes before any work: it has passed on this commit for task-001." in warning
    )
    assert warning.endswith("harness finish task-002 --already-done")
    agent.ok("finish", "--already-done")
    assert agent.ok("claim")["warnings"] == []
    assert not ran.exists(), "a claim runs no check"
    agent.ok("finish")
    project.put("g", "x\n")
    project.commit("The user's")
    assert agent.ok("claim")["warnings"] == []

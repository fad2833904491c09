"""`harness finish`: an attempt that changes its own check, or a file it must not, has failed."""

from __future__ import annotations

import pytest

from tests.ops.project import Agent, Project, begin


def test_the_check_edited_in_the_file_is_a_failure_that_names_it(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    project.edit_task(validation={"command": "touch ran"})

    reply = agent.fails(1, "finish")

    assert "validation.command" in reply["message"]
    assert project.task()["error_log"][0].startswith("[TEST_FAIL] The attempt changed its own gate")
    assert not (project.top / "ran").exists()


def test_and_the_next_attempt_does_not_get_away_with_it(project: Project, agent: Agent) -> None:
    """The list is not rolled back, so the weak check would be the next attempt's gate."""
    begin(agent, "false")
    project.edit_task(validation={"command": "true"})
    agent.fails(1, "finish")

    reply = agent.fails(9, "claim")

    assert reply["stop"] == {"reason": "waiting"}
    assert "validation.command was changed" in project.task()["halt"]
    agent.fails(2, "claim", "task-001")


@pytest.mark.parametrize("gate", [None, {}, {"command": "sha256:0"}])
def test_a_gate_that_was_removed_or_replaced_is_a_failure(
    project: Project, agent: Agent, gate: dict[str, str] | None
) -> None:
    begin(agent, "true")
    project.edit_task(gate=gate)

    agent.fails(1, "finish")

    assert project.task()["status"] == "failed"


def test_a_protected_file_that_changed_is_a_failure_that_names_it(project: Project, agent: Agent) -> None:
    project.put("tests/a.py", "assert False\n")
    project.commit()
    begin(agent, "true", "--protect", "tests/**")
    project.put("tests/a.py", "assert True\n")

    reply = agent.fails(1, "finish")

    assert "tests/a.py" in reply["message"]
    assert project.read("tests/a.py") == "assert False\n"
    assert agent.ok("claim")["task"]["attempts"] == 1
    agent.ok("finish")


def test_a_new_protected_file_is_a_change_too_and_a_committed_one(project: Project, agent: Agent) -> None:
    project.put("tests/a.py", "assert False\n")
    project.commit()
    begin(agent, "true", "--protect", "tests/**")
    project.put("tests/conftest.py", "skip everything\n")
    project.commit("hidden in a commit")

    assert "tests/conftest.py" in agent.fails(1, "finish")["message"]


def test_a_changed_working_directory_is_a_failure(project: Project, agent: Agent) -> None:
    project.put("sub/file")
    project.commit()
    begin(agent, "true")
    project.edit_task(validation={"command": "true", "cwd": "sub"})

    assert "validation.cwd" in agent.fails(1, "finish")["message"]

"""`harness finish`: an attempt that changes its own check, or a file it must not, has failed."""

from __future__ import annotations

import shutil

import pytest

from harness_lib.rules import gates
from tests.verbs.project import Agent, Project, begin


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
    assert "harness edit task-001" in agent.fails(9, "claim", "task-001")["message"]


@pytest.mark.parametrize("gate", [None, {}, {"command": "sha256:0"}])
def test_a_gate_that_was_removed_or_replaced_is_a_failure(
    project: Project, agent: Agent, gate: dict[str, str] | None
) -> None:
    begin(agent, "true")
    project.edit_task(gate=gate)

    agent.fails(1, "finish")

    assert project.task()["status"] == "failed"


def test_check_and_fingerprint_edited_together_are_noticed(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    gate = project.task()["gate"] | {"command": gates.command_hash("true", None)}
    project.edit_task(validation={"command": "true"}, gate=gate)
    agent.ok("checkpoint", "task-001", "1/2", "which writes the list anew")

    assert "gate" in agent.fails(1, "finish")["message"]
    assert "a person must say" in project.task()["halt"]


def test_a_check_that_a_person_has_corrected_meanwhile_is_no_cheat(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    project.agent("person").ok("edit", "task-001", "--validate", "true")
    agent.ok("finish")


def test_without_the_copy_of_the_gate_the_list_is_believed(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    shutil.rmtree(project.top / ".harness")
    agent.ok("finish")


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

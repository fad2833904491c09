"""`harness finish` where nothing can be decided: no attempt is counted, no work lost, and it says why."""

from __future__ import annotations

import pytest

from tests.verbs.project import Agent, Project, begin


def test_no_check_is_config_with_the_field_and_no_attempt(project: Project, agent: Agent) -> None:
    agent.ok("add", "One")
    agent.ok("claim")
    project.put("work.txt", "work\n")

    error = agent.fails(3, "finish")["error"]

    assert "tasks[0]" in error["message"]
    assert project.grep("ERROR [task-001] [CONFIG] Missing validation.command")
    assert project.task()["attempts"] == 0
    assert project.task()["status"] == "in_progress"
    assert project.read("work.txt") == "work\n"
    assert project.state["sessions"][0]["halt"].startswith("CONFIG: ")


@pytest.mark.parametrize("cwd", ["no/such", "tracked.txt", "way-out"])
def test_a_working_directory_that_is_none_is_config_and_halts(
    project: Project, agent: Agent, cwd: str
) -> None:
    begin(agent, "true", "--cwd", cwd)
    (project.top / "way-out").symlink_to(project.top.parent)

    assert cwd in agent.fails(3, "finish")["error"]["message"]
    assert project.task()["attempts"] == 0
    assert project.state["sessions"][0]["halt"].startswith("CONFIG: ")


@pytest.mark.parametrize("check", ["no-such-tool --flag", "true && no-such-tool", "exit 127"])
def test_a_missing_command_is_env_setup_and_costs_no_attempt(
    project: Project, agent: Agent, check: str
) -> None:
    begin(agent, check)
    project.put("work.txt", "work\n")

    error = agent.fails(7, "finish")["error"]

    assert error["kind"] == "ENV_SETUP"
    assert "harness finish task-001" in error["hint"]
    # The name may be misspelt, and then nothing can be installed.
    assert "harness edit task-001 --validate 'COMMAND'" in error["hint"]
    assert project.grep("ERROR [task-001] [ENV_SETUP]")
    assert project.task()["attempts"] == 0
    assert project.task()["status"] == "in_progress"
    assert project.read("work.txt") == "work\n"
    assert project.state["sessions"][0]["halt"].startswith("ENV_SETUP: ")


def test_the_init_script_gets_one_more_chance_to_install_it(project: Project, agent: Agent) -> None:
    begin(agent, "./tool")
    install = 'echo run >> runs.txt; echo "#!/bin/sh" > tool; chmod +x tool\n'
    project.put("harness-init.sh", f"#!/bin/sh\n{install}")

    agent.ok("finish")

    assert project.read("runs.txt") == "run\n"


def test_when_the_machine_is_mended_finish_goes_on(project: Project, agent: Agent) -> None:
    begin(agent, "./tool")
    agent.fails(7, "finish")
    project.put("tool", "#!/bin/sh\n").chmod(0o755)

    agent.ok("finish")

    assert project.task()["status"] == "completed"


def test_a_list_that_is_not_trusted_runs_neither_check_nor_cleanup(project: Project, agent: Agent) -> None:
    """A tracked list is asked about again when its commands change outside of the command line."""
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-qm", "list")
    begin(agent, "touch ran", "--cleanup", "touch cleaned")
    project.edit_task(on_failure={"cleanup": "touch evil"})

    error = agent.fails(8, "finish")["error"]

    assert "harness trust" in error["hint"]
    assert project.task()["attempts"] == 0
    assert project.state["sessions"][0]["halt"].startswith("REFUSED: ")
    reply = agent.ok("fail", "task-001", "--message", "given up")
    assert "not run" in reply["warnings"][0]
    assert sorted(project.files) == ["tracked.txt"]


def test_after_trust_it_runs(project: Project, agent: Agent) -> None:
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-qm", "list")
    begin(agent, "true")
    project.edit_task(validation={"command": "true", "timeout_seconds": 9, "cwd": None})
    project.edit_task(on_failure={"cleanup": "true"})
    agent.fails(8, "finish")

    project.agent("person").ok("trust", "--yes", HARNESS_TRUST="1")

    agent.ok("finish")

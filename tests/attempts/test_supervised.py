"""An agent that a supervisor started works; to take, end and run tasks is the supervisor's."""

from __future__ import annotations

import pytest

from tests.verbs.project import Agent, Project

SUPERVISED = {"HARNESS_SUPERVISED": "task-001"}
REFUSED = [
    ["start"],
    ["claim"],
    ["finish"],
    ["fail", "task-001", "--message", "no"],
    ["release"],
    ["stop"],
    ["recover"],
    ["retry", "task-001"],
    ["remove", "task-001"],
    ["run"],
    ["run", "--agent-command", "true"],
    ["edit", "task-002", "--validate", "false"],
    ["edit", "--max-sessions", "1"],
    ["import", "tasks.md"],
    ["pause"],
    ["init"],
    ["trust", "--yes"],
    ["hooks", "install"],
    ["check", "--repair"],
]


@pytest.fixture
def held(agent: Agent) -> Agent:
    """Return an agent that holds the first of two tasks."""
    for title in ("One", "Two"):
        agent.ok("add", title, "--validate", "true")
    agent.ok("claim")
    return agent


@pytest.mark.parametrize("argv", REFUSED, ids=" ".join)
def test_what_ends_a_task_is_refused_and_changes_nothing(
    project: Project, held: Agent, argv: list[str]
) -> None:
    before = project.file.read_bytes()
    error = held.fails(2, *argv, **SUPERVISED)["error"]
    assert (error["kind"], "end your turn" in error["hint"]) == ("USAGE", True)
    assert project.file.read_bytes() == before


@pytest.mark.parametrize(
    "argv",
    [
        ["status"],
        ["show", "task-001"],
        ["checkpoint", "task-001", "1/2", "half"],
        ["note", "task-001", "a trap"],
        ["add", "A task that this one found", "--validate", "true"],
        ["log"],
        ["why", "task-002"],
        ["rescue", "list"],
    ],
    ids=lambda argv: argv[0],
)
def test_what_helps_the_work_is_not(held: Agent, argv: list[str]) -> None:
    held.ok(*argv, **SUPERVISED)

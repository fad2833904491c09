"""`harness why ID`: the reason, and the one command that helps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.verbs.project import Agent, Project

CASES: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "completed": ([{"id": "a", "status": "completed"}], "completed at", "harness show a"),
    "next": ([{"id": "a"}], "next: pending", "harness claim a"),
    "waits": ([{"id": "a", "depends_on": ["b"]}, {"id": "b"}], "waits for b", "harness why b"),
    "used up": (
        [{"id": "a", "status": "failed", "attempts": 3}],
        "attempts used up (3/3)",
        "harness retry a",
    ),
    "blocked": (
        [
            {"id": "a", "status": "failed", "depends_on": ["b"], "error_log": ["[DEPENDENCY] Blocked by b"]},
            {"id": "b", "depends_on": ["c"], "status": "failed", "error_log": ["[DEPENDENCY] Blocked by c"]},
            {"id": "c", "status": "failed", "attempts": 3},
        ],
        "depends on b, which has failed for good",
        "harness retry c",
    ),
    "blocked by what is done by now": (
        [
            {"id": "a", "status": "failed", "depends_on": ["b"], "error_log": ["[DEPENDENCY] Blocked by b"]},
            {"id": "b", "status": "completed"},
        ],
        "failed for good",
        "harness retry a",
    ),
    "cycle": (
        [{"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}],
        "in a cycle: a -> b -> a",
        "harness edit a --depends-on ID",
    ),
    "behind a recorded cycle": (
        [
            {"id": "a", "depends_on": ["b"]},
            {"id": "b", "depends_on": ["b"], "status": "failed", "error_log": ["[DEPENDENCY] Circular"]},
        ],
        "depends on b, which has failed for good",
        "harness why b",
    ),
    "halted without a check": (
        [{"id": "a", "halt": "CONFIG: no check"}],
        "halted until a person has acted: CONFIG: no check",
        "harness edit a --validate 'COMMAND'",
    ),
    "halted": (
        [{"id": "a", "halt": "ENV_SETUP: no npm", "validation": {"command": "npm test"}}],
        "halted until a person has acted",
        "harness show a",
    ),
    "claimed by nobody": ([{"id": "a", "status": "in_progress"}], "claimed by nobody", "harness start"),
    "lease ended": (
        [
            {
                "id": "a",
                "status": "in_progress",
                "claimed_by": "w",
                "lease_expires_at": "2025-07-01T10:00:00Z",
            }
        ],
        "whose lease ended at 2025-07-01T10:00:00Z",
        "harness recover",
    ),
    "held by another": (
        [{"id": "a", "status": "in_progress", "claimed_by": "w"}],
        "in progress by w",
        "harness status",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_reason_and_the_command_that_helps(project: Project, agent: Agent, name: str) -> None:
    tasks, reason, command = CASES[name]
    document = {"tasks": [{"status": "pending", **task} for task in tasks]}
    project.file.write_text(json.dumps(document), encoding="utf-8")
    said = agent.ok("why", "a")
    assert any(reason in each for each in said["reasons"]), said["reasons"]
    assert said["next"] == command
    assert said["task"]["id"] == "a"


def test_what_i_hold_i_finish(agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")
    assert agent.ok("why", "task-001")["next"] == "harness finish"


def test_a_thousand_reasons_are_a_number(project: Project, agent: Agent) -> None:
    ids = [f"t{n}" for n in range(1000)]
    tasks = [{"id": name, "status": "pending"} for name in ids]
    tasks.append({"id": "a", "status": "pending", "depends_on": ids})  # type: ignore[dict-item]
    project.file.write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    said = agent("why", "a")
    assert len(said.out.splitlines()) < 20
    assert "… and 990 more" in said.out


def test_a_task_that_is_not_there_is_a_usage_error(agent: Agent) -> None:
    assert "no task 'x'" in agent.fails(2, "why", "x")["message"]


def test_without_an_id_it_explains_what_comes_next_and_what_waits(project: Project, agent: Agent) -> None:
    tasks: list[dict[str, Any]] = [
        {"id": "done", "status": "completed"},
        {"id": "first", "title": "Begin", "status": "pending"},
        {"id": "second", "status": "pending"},
        {"id": "waiting", "status": "pending", "depends_on": ["first"]},
        {"id": "spent", "status": "failed", "attempts": 3},
        {"id": "behind", "status": "pending", "depends_on": ["spent"]},
    ]
    project.edit(tasks=tasks)
    project.without_proofs()

    said = agent.ok("why")

    assert said["message"].splitlines()[0] == "next: [pending] first: Begin (0/3)"
    assert [each["id"] for each in said["tasks"]] == ["spent", "first", "behind", "waiting"]
    assert "waits for first (pending)" in said["message"]
    assert "depends on spent, which has failed for good" in said["message"]
    assert "second" not in said["message"]
    assert said["next"] == "harness start"


def test_without_an_id_of_a_long_list_only_some_are_explained(project: Project, agent: Agent) -> None:
    tasks = [{"id": f"t-{n}", "status": "pending", "depends_on": ["t-0"] if n else []} for n in range(50)]
    project.edit(tasks=tasks)

    said = agent.ok("why")

    assert "… and 40 more that may not be claimed now" in said["message"]
    assert len(said["message"].splitlines()) < 30


def test_without_an_id_of_an_empty_list_it_says_so(agent: Agent) -> None:
    assert "The list is empty" in agent.ok("why")["message"]

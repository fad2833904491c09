"""With --json every verb answers with one object that fits the schema; what is piped is short."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_lib.errors import Exit
from harness_lib.state import schema
from tests.cli.conftest import TYPED, filled_project, keeps_the_contract
from tests.conftest import for_release
from tests.verbs import project as projects
from tests.verbs.project import Agent, Project

pytestmark = pytest.mark.usefixtures("asked_once")


@pytest.fixture(scope="module")
def spoiled(places: Path) -> Iterator[Project]:
    """Make a project whose list breaks the contract; no verb may change it."""
    made = filled_project(places / "spoiled")
    made.edit_task(status="pnding")
    yield made
    made.close()


@pytest.fixture(scope="module")
def nowhere(places: Path) -> Iterator[Agent]:
    """Return somebody in a directory that is no project and no repository."""
    made = Project(places / "nowhere")
    made.top.mkdir()
    yield made.agent()
    made.close()


@pytest.mark.parametrize("name", TYPED)
def test_json_in_a_project_is_one_object_that_fits_the_schema(filled: Project, name: str) -> None:
    said = filled.agent()(*TYPED[name], "--json")
    assert keeps_the_contract(said)["verb"] == name


@pytest.mark.parametrize("name", TYPED)
def test_json_for_who_holds_the_task_fits_the_schema(filled: Project, name: str) -> None:
    agent = filled.agent()
    agent.ok("claim")
    assert keeps_the_contract(agent(*TYPED[name], "--json"))["verb"] == name


@pytest.mark.parametrize("name", TYPED)
def test_json_without_a_project_is_an_object_too(nowhere: Agent, name: str) -> None:
    said = nowhere(*TYPED[name], "--json")
    assert keeps_the_contract(said)["verb"] == name


@pytest.mark.parametrize("name", TYPED)
def test_json_about_a_list_that_breaks_the_contract_is_an_object_too(spoiled: Project, name: str) -> None:
    before = spoiled.file.read_bytes()
    said = keeps_the_contract(spoiled.agents[0](*TYPED[name], "--json"))
    assert said["exit"] != Exit.BUG
    assert spoiled.file.read_bytes() == before


@pytest.mark.parametrize(
    "argv",
    [[], ["nonsense"], ["add"], ["log", "-n", "x"], ["claim", "--nonsense"], ["checkpoint", "task-001"]],
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_wrong_arguments_are_a_usage_error_as_json(spoiled: Project, argv: list[str], place: str) -> None:
    typed = ["--json", *argv] if place == "before" else [*argv, "--json"]
    said = keeps_the_contract(spoiled.agents[0](*typed))
    assert (said["exit"], said["error"]["kind"]) == (2, "USAGE")
    assert "--help" in said["error"]["hint"]


# -- what is piped is short however long the list is, and its reader may leave early


BIG = 500
LINES = 60
# What an agent can read without losing much of its context window.
CHARACTERS = 16_000
JSON_CHARACTERS = 120_000


@pytest.fixture(scope="module")
def big(places: Path) -> Iterator[Project]:
    """Make a project with 500 tasks, none of them modest, and twenty sessions."""
    made = projects.make(places / "big", mode="concurrent")
    made.edit(tasks=[_big_task(number) for number in range(BIG)], sessions=[_session(n) for n in range(20)])
    with (made.top / "harness-progress.txt").open("a") as log:
        log.writelines(f"[2025-07-01T10:00:00Z] [SESSION-1] WARN {'word ' * 60}\n" for _ in range(BIG))
    yield made
    made.close()


def _big_task(number: int) -> dict[str, Any]:
    """One in ten is in progress, failed for good, halted, or without a check; all have much to tell."""
    kind = number % 10
    return {
        "id": f"task-{number:04}",
        "title": f"Title {number} " + "long " * 100,
        "description": "described " * 300,
        "status": {0: "completed", 1: "in_progress", 2: "failed"}.get(kind, "pending"),
        "attempts": 3 if kind == 2 else 0,
        "claimed_by": f"worker-{number}" if kind == 1 else None,
        "lease_expires_at": "2025-07-01T10:00:00Z" if kind == 1 else None,
        "halt": "CONFIG: " + "a word " * 30 if kind == 3 else None,
        "validation": {"command": None if kind == 4 else "no-such-program " + "x" * 1000},
        "error_log": ["[TEST_FAIL] " + "failed " * 60] * 3 if kind == 2 else [],
        "depends_on": [f"task-{n:04}" for n in range(max(0, number - 3), number)],
    }


def _session(number: int) -> dict[str, Any]:
    return {
        "number": number + 1,
        "worker": f"worker-{number}",
        "host": "elsewhere",
        "halt": f"CONFIG: {number}",
    }


LOOKING = [
    ["status"],
    ["log"],
    ["graph"],
    ["graph", "--format", "mermaid"],
    ["show", f"task-{BIG - 1:04}"],
    ["check"],
    ["doctor"],
    ["show", f"task-{BIG - 8:04}"],
    ["claim", "--dry-run"],
    ["rescue", "list"],
]


@pytest.mark.parametrize(
    "argv", [*LOOKING[:3], *for_release(*((argv,) for argv in LOOKING[3:]))], ids=" ".join
)
def test_what_is_piped_is_short_however_long_the_list_is(big: Project, argv: list[str]) -> None:
    text = big.agents[0](*argv)
    assert len(text.out.splitlines()) <= LINES
    assert len(text.out) <= CHARACTERS
    piped = big.agents[0](*argv, "--json")
    assert len(piped.out) <= JSON_CHARACTERS
    assert schema.problems(json.loads(piped.out), "reply") == []

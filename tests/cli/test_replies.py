"""With --json every verb answers with one object that fits the schema, whatever happens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.errors import Exit
from tests.cli.conftest import TYPED, filled_project, keeps_the_contract
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

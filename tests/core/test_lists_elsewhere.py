"""A repository whose list lies elsewhere in it: whoever looks in the wrong place is told where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project


@pytest.fixture
def person(make_project: Make) -> Agent:
    """Return the user at the top of a repository with a list of one task in `pkg/the api`."""
    project = make_project(bare=True)
    project.commit(files={"pkg/the api/readme": "x\n"})
    made = project.agent("person")
    made.ok("init", "pkg/the api")
    project.agent("person", project.top / "pkg/the api").ok("add", "One", "--validate", "true")
    return made


def test_every_verb_says_where_the_list_is(person: Agent) -> None:
    place = person.cwd / "pkg/the api"
    for verb in ("status", "start", "claim", "check", "stop", "add Title"):
        error = person.fails(2, *verb.split())["error"]

        assert f"this repository has one in {place}" in error["message"]
        assert f"cd '{place}'" in error["hint"]
        assert "init" not in error["hint"]
    # A newcomer and the doctor are told too.
    assert str(place) in person().out
    assert str(place) in person("doctor").out


def test_a_second_list_is_made_only_where_its_place_is_named(person: Agent) -> None:
    error = person.fails(2, "init")["error"]

    assert f"has a task list in {person.cwd / 'pkg/the api'}" in error["message"]
    assert "harness init ." in error["hint"]
    assert not (person.cwd / "harness-tasks.json").exists()
    assert "task list already" in person.ok("init", "pkg/the api")["message"]
    person.ok("init", ".")
    assert person.ok("status")["counts"]["total"] == 0


def test_nor_is_one_made_below_another_by_mistake_unless_in_a_repository_of_its_own(project: Project) -> None:
    inner = project.top / "inner"
    inner.mkdir()
    person = project.agent("person", inner)
    error = person.fails(2, "init")["error"]
    assert f"has a task list in {project.top}" in error["message"]
    assert not (inner / "harness-tasks.json").exists()

    project.git("init", "-q", str(inner))

    assert person.ok("init")["root"] == str(inner)


def test_a_list_above_that_is_in_no_repository_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "harness-tasks.json").write_text('{"tasks": []}')
    inner = Project(tmp_path / "inner")
    sh(tmp_path, "init", "-q", str(inner.top))

    assert inner.agent("person").ok("init")["root"] == str(inner.top)
    inner.close()


def test_a_directory_that_is_gone_is_not_named(person: Agent) -> None:
    (person.cwd / "pkg").rename(person.cwd / "moved")

    assert "harness init" in person.fails(2, "status")["error"]["hint"]
    person.ok("init")


def test_a_list_that_was_lost_there_is_named_and_comes_back(person: Agent) -> None:
    place = person.cwd / "pkg/the api"
    for file in place.glob("harness-*"):
        file.unlink()

    assert str(place) in person.fails(2, "status")["error"]["message"]
    person.cwd = place
    assert person.ok("status")["counts"]["total"] == 1

"""`harness init` makes the files of a list, and touches nothing that is there already."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.system.git.gitrepo import put
from tests.verbs.conftest import Make
from tests.verbs.project import LINE, Project


def test_a_repository_without_a_commit_is_told_what_it_lacks(tmp_path: Path) -> None:
    place = Project(tmp_path)
    place.git("init", "-q")
    agent = place.agent()
    try:
        said = agent.ok("init")
    finally:
        place.close()
    assert any("no commit yet" in each and "harness init --git" in each for each in said["warnings"])


def test_it_makes_the_files_and_git_does_not_see_them(make_project: Make) -> None:
    project = make_project()

    assert project.state["version"] == 2
    assert project.state["tasks"] == []
    assert project.state["sessions"] == []
    assert project.state["session_config"] == {
        "concurrency_mode": "exclusive",
        "max_tasks_per_session": 20,
        "max_sessions": 50,
    }
    assert project.marker
    assert project.git("status", "--porcelain") == ""
    assert len(project.log) == 1
    assert LINE.match(project.log[0])
    assert f"INIT Harness initialized for project {project.top}" in project.log[0]


def test_a_second_time_it_changes_nothing(project: Project) -> None:
    agent = project.agent()
    agent.ok("add", "Something")
    before = (project.file.read_bytes(), project.log)

    reply = agent.ok("init", "--mode", "concurrent")

    assert (project.file.read_bytes(), project.log) == before
    assert reply["made"] == []
    assert "stays exclusive" in reply["warnings"][0]


@pytest.mark.parametrize("on", [True, False])
def test_a_second_time_the_hooks_stay_as_they_are(project: Project, *, on: bool) -> None:
    agent = project.agent()
    agent.ok("add", "Something")
    if not on:
        agent.ok("pause")

    agent.ok("init")

    assert project.marker is on


def test_an_old_list_and_its_log_are_left_as_they_are_and_not_trusted(make_project: Make) -> None:
    """A list that is there may have come with a clone: `init` does not make its commands this person's."""
    project = make_project(bare=True)
    project.put(
        "harness-tasks.json",
        '{"tasks": [{"id": "a", "status": "pending", "validation": {"command": "true"}}]}',
    )
    project.put("harness-progress.txt", "old line\n")
    agent = project.agent()

    agent.ok("init")

    assert project.read("harness-progress.txt") == "old line\n"
    assert project.state["tasks"][0]["validation"]["command"] == "true"
    agent.ok("claim")
    assert "trust" in agent.fails(8, "finish")["error"]["hint"]


def test_an_older_log_without_a_list_is_continued(make_project: Make) -> None:
    project = make_project(bare=True)
    project.put("harness-progress.txt", "old line\n")

    project.agent().ok("init")

    assert project.log[0] == "old line"
    assert len(project.log) == 2


def test_outside_of_git_nothing_is_made(tmp_path: Path, make_project: Make) -> None:
    agent = make_project(bare=True).agent()
    place = tmp_path / "plain"
    place.mkdir()

    reply = agent.fails(7, "init", str(place))

    assert str(place) in reply["error"]["message"]
    assert "--git" in str(reply["error"]["hint"])
    assert list(place.iterdir()) == []


def test_with_git_it_makes_the_repository_and_its_first_commit(tmp_path: Path, make_project: Make) -> None:
    agent = make_project(bare=True).agent()
    place = tmp_path / "plain"
    put(place / "mine.txt", "mine\n")

    agent.ok("init", str(place), "--git")

    project = Project(place)
    assert project.in_commit() == []
    assert project.git("status", "--porcelain") == "?? mine.txt"


def test_a_place_that_is_no_directory_is_a_wrong_argument(make_project: Make) -> None:
    project = make_project(bare=True)

    reply = project.agent().fails(2, "init", "no/such/place")

    assert "no/such/place" in reply["error"]["message"]


def test_gitignore_is_added_to_and_nothing_in_it_is_lost(make_project: Make) -> None:
    project = make_project(bare=True)
    project.put(".gitignore", b"build/\n*.caf\xe9")
    agent = project.agent()

    agent.ok("init", "--gitignore")
    agent.ok("init", "--gitignore")

    text = (project.top / ".gitignore").read_bytes()
    assert text.startswith(b"build/\n*.caf\xe9\n/harness-tasks.json\n")
    assert text.count(b"/harness-tasks.json\n") == 1
    assert project.git("status", "--porcelain") == "?? .gitignore"


def test_the_init_script_is_a_template_that_never_replaces_yours(make_project: Make) -> None:
    project = make_project(bare=True)
    agent = project.agent()

    agent.ok("init", "--init-script")

    script = project.top / "harness-init.sh"
    assert os.access(script, os.X_OK)
    script.write_text("#!/bin/sh\necho mine\n", encoding="utf-8")
    agent.ok("init", "--init-script")
    assert "echo mine" in project.read("harness-init.sh")


@pytest.mark.parametrize("name", ["a [b] dir", "#hash", "!bang", "star*", "back\\slash", "end ", "tücke"])
def test_a_list_in_an_oddly_named_folder_of_the_repository_is_ignored_too(
    make_project: Make, name: str
) -> None:
    project = make_project(bare=True)
    (project.top / name).mkdir()

    project.agent().ok("init", name)

    assert (project.top / name / "harness-tasks.json").exists()
    assert project.git("status", "--porcelain") == ""


def test_a_list_that_was_removed_is_restored_and_said_so(project: Project) -> None:
    agent = project.agent()
    agent.ok("add", "Something", "--validate", "true")
    (project.top / ".harness-active").unlink()
    project.file.unlink()

    reply = agent.ok("init")

    assert [task["title"] for task in project.state["tasks"]] == ["Something"]
    assert "restored" in reply["message"]
    assert "harness init --start-over" in reply["message"]
    assert reply["next"] == "harness status"
    assert project.marker


@pytest.mark.parametrize("removed", [True, False])
def test_a_person_can_start_over_and_the_old_list_is_kept_beside_the_new_one(
    project: Project, *, removed: bool
) -> None:
    agent = project.agent()
    agent.ok("add", "Something", "--validate", "true")
    before = project.state["tasks"]
    if removed:
        project.file.unlink()

    reply = agent.ok("init", "--start-over")

    assert (project.state["tasks"], project.state["sessions"]) == ([], [])
    (kept,) = project.top.glob("harness-tasks.json.old-*")
    assert json.loads(kept.read_text(encoding="utf-8"))["tasks"] == before
    assert kept.name in reply["message"]
    assert project.git("status", "--porcelain") == ""
    agent.ok("add", "Another", "--validate", "true")
    agent.ok("claim")


def test_nobody_starts_over_while_a_task_is_in_progress_or_another_agent_works(project: Project) -> None:
    agent = project.agent()
    agent.ok("add", "Something", "--validate", "true")
    agent.ok("claim")
    before = project.file.read_bytes()

    project.agent("person").fails(5, "init", "--start-over")
    error = agent.fails(8, "init", "--start-over")["error"]

    assert "task-001 is in progress" in error["message"]
    assert project.file.read_bytes() == before


def test_it_offers_the_lines_that_the_rules_of_the_project_lack(make_project: Make) -> None:
    """Of what is here, or what the tools of such a project make; and adds them where it is let."""
    project = make_project(bare=True)
    for name in ("package.json", "Cargo.toml", ".env", "web/.gradle/x"):
        project.put(name)
    project.put(".gitignore", "target\n")
    agent = project.agent()

    (offer,) = agent.ok("init")["warnings"]
    assert "does not ignore .env, node_modules/ here" in offer
    assert "harness init --gitignore" in offer
    assert "does not ignore .env, node_modules/ here" in agent("doctor").out

    assert agent.ok("init", "--gitignore")["warnings"] == []
    assert {".env", "node_modules/"} <= set(project.read(".gitignore").splitlines())


def test_what_git_tracks_is_no_line_to_add(make_project: Make) -> None:
    project = make_project(bare=True)
    project.put(".env")
    project.commit()

    assert project.agent().ok("init")["warnings"] == []

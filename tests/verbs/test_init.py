"""`harness init` makes the files of a list, and touches nothing that is there already."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness_lib import typed
from tests.system.git.gitrepo import put
from tests.verbs.project import LINE, Agent, Project


def test_a_repository_without_a_commit_is_told_what_it_lacks(bare: Project) -> None:
    bare.git("checkout", "-q", "--orphan", "empty")
    said = bare.agent().ok("init")
    assert any("no commit yet" in each and "harness init --git" in each for each in said["warnings"])
    assert bare.agent().ok("init", "--git")["warnings"] == [], "its files are in the index"
    bare.git("rm", "-q", "--cached", "tracked.txt")
    (warning,) = bare.agent().ok("init")["warnings"]
    assert "git add" in warning, "the commit is empty: no task can hand in a change of what is there"
    (bare.top / "tracked.txt").unlink()
    assert bare.agent().ok("init")["warnings"] == []


def test_it_makes_the_files_and_git_does_not_see_them(bare: Project) -> None:
    bare.agent().ok("init")

    names = {path.name for path in bare.top.iterdir()} - {".git", ".harness", "tracked.txt"}
    assert names == {"harness-tasks.json", "harness-progress.txt", ".harness-active"}
    assert bare.state["version"] == 2
    assert bare.state["tasks"] == bare.state["sessions"] == []
    settings = {"concurrency_mode": "exclusive", "max_tasks_per_session": 20, "max_sessions": 50}
    assert bare.state["session_config"] == settings
    assert bare.enable_flag
    assert bare.git("status", "--porcelain") == ""
    (line,) = bare.log
    assert LINE.match(line)
    assert f"INIT Harness initialized for project {bare.top}" in line


def test_a_second_time_it_changes_nothing(project: Project, one: Agent) -> None:
    before = (project.file.read_bytes(), project.log)

    reply = one.ok("init", "--mode", "concurrent")

    assert (project.file.read_bytes(), project.log) == before
    assert reply["made"] == []
    assert "stays exclusive" in reply["warnings"][0]
    one.ok("edit", "--final-check")
    one.ok("init", "--no-final-check")
    assert project.state["session_config"]["final_check"] is False, "but what is typed counts"


def test_a_second_time_the_hooks_stay_as_they_are(project: Project, one: Agent) -> None:
    one.ok("init")
    assert project.enable_flag
    one.ok("pause")
    one.ok("init")
    assert not project.enable_flag


def test_an_old_list_and_its_log_are_left_as_they_are_and_not_trusted(bare: Project) -> None:
    """A list that is there may have come with a clone: `init` does not make its commands this user's."""
    task = {"id": "a", "status": "pending", "validation": {"command": "true"}}
    bare.put("harness-tasks.json", json.dumps({"tasks": [task]}))
    bare.put("harness-progress.txt", "old line\n")
    agent = bare.agent()

    agent.ok("init")

    assert bare.read("harness-progress.txt") == "old line\n"
    assert bare.state["tasks"][0]["validation"]["command"] == "true"
    agent.ok("claim")
    for _ in range(2):
        assert "trust" in agent.fails(8, "finish")["error"]["hint"]
        agent.ok("init", "--init-script")


def test_an_older_log_without_a_list_is_continued(bare: Project) -> None:
    bare.put("harness-progress.txt", "old line\n")

    bare.agent().ok("init", "--start-over")

    assert bare.log[0] == "old line"
    assert len(bare.log) == 2


def test_outside_of_git_nothing_is_made_unless_with_git(bare: Project, tmp_path: Path) -> None:
    agent, place = bare.agent(), tmp_path / "plain"
    put(place / "mine.txt", "mine\n")

    error = agent.fails(7, "init", str(place))["error"]
    assert str(place) in error["message"]
    assert "--git" in error["hint"]
    assert [path.name for path in place.iterdir()] == ["mine.txt"]

    agent.ok("init", str(place), "--git")
    project = Project(place)
    assert project.in_commit() == []
    assert project.git("status", "--porcelain") == "?? mine.txt"
    assert "no/such/place" in agent.fails(2, "init", "no/such/place")["error"]["message"]


def test_gitignore_is_added_to_and_nothing_in_it_is_lost(bare: Project) -> None:
    bare.put(".gitignore", b"build/\r\n*.caf\xe9").chmod(0o600)
    agent = bare.agent()

    agent.ok("init")
    assert "git ignores the harness files (.gitignore)" in agent.ok("init", "--gitignore")["message"]
    agent.ok("init", "--gitignore")

    text = (bare.top / ".gitignore").read_bytes()
    assert text.startswith(b"build/\r\n*.caf\xe9\n/harness-tasks.json\n")
    assert text.count(b"/harness-tasks.json\n") == 1
    assert (bare.top / ".gitignore").stat().st_mode & 0o777 == 0o600
    assert bare.git("status", "--porcelain") == "?? .gitignore"


def test_the_init_script_is_a_template_that_never_replaces_yours(bare: Project) -> None:
    agent = bare.agent()

    assert agent.ok("init", "--init-script")["made"][-1] == "harness-init.sh"

    script = bare.top / "harness-init.sh"
    assert os.access(script, os.X_OK)
    script.write_text("#!/bin/sh\necho mine\n")
    agent.ok("init", "--init-script")
    assert "echo mine" in bare.read("harness-init.sh")


@pytest.mark.parametrize("has_list", [False, True])
def test_a_list_stays_trusted_when_the_new_init_script_is_committed(bare: Project, has_list: bool) -> None:
    agent = bare.agent()
    if has_list:
        agent.ok("init")
        agent.ok("add", "First", "--validate", "true")
    agent.ok("init", "--init-script")
    bare.git("add", "harness-init.sh")
    bare.commit("Add the init script")

    warnings = agent.ok("add", "Second", "--validate", "true")["warnings"]
    assert not [warning for warning in warnings if "trust" in warning]
    agent.ok("start")


def test_a_list_in_an_oddly_named_folder_of_the_repository_is_ignored_too(bare: Project) -> None:
    for name in ("a [b] dir", "#hash", "!bang", "star*", "back\\slash", "end ", "tücke"):
        (bare.top / name).mkdir()

        reply = bare.agent().ok("init", name)

        assert reply["next"].startswith(f"{typed.change_to(bare.top / name)} && harness add ")
        assert (bare.top / name / "harness-tasks.json").exists()
        assert bare.git("status", "--porcelain") == "", name


def test_a_list_that_was_removed_is_restored_and_said_so(project: Project, one: Agent) -> None:
    (project.top / ".harness-active").unlink()
    project.file.unlink()

    reply = one.ok("init")

    assert [task["title"] for task in project.state["tasks"]] == ["One"]
    assert "restored" in reply["message"]
    assert "harness init --start-over" in reply["message"]
    assert reply["next"] == "harness status"
    assert project.enable_flag


@pytest.mark.parametrize("removed", [True, False])
def test_the_user_can_start_over_and_keeps_the_old(project: Project, one: Agent, *, removed: bool) -> None:
    before = project.state["tasks"]
    if removed:
        project.file.unlink()

    reply = one.ok("init", "--start-over")

    assert (project.state["tasks"], project.state["sessions"]) == ([], [])
    (kept,) = project.top.glob("harness-tasks.json.old-*")
    assert json.loads(kept.read_text())["tasks"] == before
    assert kept.name in reply["message"]
    assert project.git("status", "--porcelain") == ""
    one.ok("add", "Another", "--validate", "true")
    one.ok("claim")


def test_nobody_starts_over_while_a_task_is_in_progress(project: Project, holder: Agent) -> None:
    before = project.file.read_bytes()

    project.agent("person").fails(5, "init", "--start-over")
    error = holder.fails(8, "init", "--start-over")["error"]

    assert "task-001 is in progress" in error["message"]
    assert project.file.read_bytes() == before


def test_it_offers_the_lines_that_the_rules_of_the_project_lack(bare: Project) -> None:
    """Of what is here, or what the tools of such a project make; and adds them where it is let."""
    for name in ("package.json", "Cargo.toml", "CMakeLists.txt", ".env", "web/.gradle/x"):
        bare.put(name)
    bare.put(".gitignore", "target\n")
    agent = bare.agent()

    (offer,) = agent.ok("init")["warnings"]
    assert "does not ignore .env, build/, node_modules/ here" in offer
    assert "harness init --gitignore" in offer
    assert "does not ignore .env, build/, node_modules/ here" in agent("doctor").out

    assert agent.ok("init", "--gitignore")["warnings"] == []
    assert {".env", "node_modules/"} <= set(bare.read(".gitignore").splitlines())


def test_what_git_tracks_is_no_line_to_add(bare: Project) -> None:
    bare.commit(files={".env": "x\n"})

    assert bare.agent().ok("init")["warnings"] == []


def test_who_may_not_move_a_list_is_told_the_whole_command(bare: Project) -> None:
    agent = bare.agent()
    agent.ok("init")
    for words in ("--to-file", "postgresql://me@db.example.org/agents --list shop"):
        error = agent.fails(8, "store", "move", *words.split(), CLAUDECODE="1")["error"]
        assert error["hint"].endswith(f": harness store move {words}")
    for action, end in (("init", ""), ("move", " --list shop")):
        hint = agent.fails(2, "store", action)["error"]["hint"]
        assert hint.endswith(f": harness store {action} postgresql://me@db.example.org/agents{end}")

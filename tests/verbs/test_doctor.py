"""`harness doctor`: each usual trouble is found and comes with its cure; a healthy project has none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system.locks import mkdir_lock
from tests.verbs.conftest import Make
from tests.verbs.findings import finding, troubles
from tests.verbs.project import Agent, Project


def test_a_project_at_work_is_well(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("claim")
    said = agent.ok("doctor")
    assert troubles(said) == []
    assert "all is well" in said["message"]
    for words in (
        "Python 3",
        "filelock",
        "git version",
        "repository",
        "state root",
        "can be read",
        "hooks",
    ):
        assert finding(said, words)["level"] == "ok"
    assert str(project.top) in finding(said, "state root")["what"]


def test_every_trouble_has_a_cure(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    agent.die()
    agent.wake()
    (project.top / ".harness-active").unlink()
    project.put("harness-init.sh", "true\n")
    project.put(".git/index.lock", "")
    said = agent.ok("doctor", HARNESS_DISABLED="1")
    assert len(troubles(said)) >= 5
    assert all(each["cure"] for each in said["found"] if each["level"] != "ok")


def test_no_repository_is_bad(tmp_path: Path, make_project: Make) -> None:
    agent = make_project(bare=True).agent()
    agent.cwd = tmp_path
    said = agent.fails(1, "doctor")
    assert finding(said, "is not in a git repository")["level"] == "bad"
    assert "harness init" in finding(said, "No harness-tasks.json")["cure"]


def test_no_git_is_bad(agent: Agent, tmp_path: Path) -> None:
    said = agent.fails(1, "doctor", PATH=str(tmp_path))
    hits = [each for each in said["found"] if "git is not installed" in each["what"]]
    assert hits
    assert all(each["level"] == "bad" for each in hits)


def test_a_git_that_is_too_old_is_bad(agent: Agent, with_git: Callable[[str], str]) -> None:
    said = agent.fails(1, "doctor", PATH=with_git("2.17.1"))
    assert finding(said, "2.17.1 is too old")["level"] == "bad"


def test_a_git_that_is_too_old_for_runs_alone_is_told(agent: Agent, with_git: Callable[[str], str]) -> None:
    hit = finding(agent.ok("doctor", PATH=with_git("2.34.1")), "2.34.1")
    assert hit["level"] == "warn"
    assert "`harness demo` need git 2.38" in hit["what"]


def test_a_repository_without_a_commit_is_bad(make_project: Make) -> None:
    project = make_project()
    project.git("checkout", "-q", "--orphan", "empty")
    said = project.agent().fails(1, "doctor")
    assert "harness init --git" in finding(said, "has no commit yet")["cure"]


def test_a_missing_identity_is_no_obstacle(project: Project, agent: Agent) -> None:
    project.git("config", "user.email", "")
    assert finding(agent.ok("doctor"), "does not know who commits")["level"] == "warn"


def test_a_merge_and_a_lock_left_over_are_told(project: Project, agent: Agent) -> None:
    project.put(".git/index.lock", "")
    project.put(".git/MERGE_HEAD", project.head + "\n")
    said = agent.ok("doctor")
    assert "index.lock" in finding(said, "git's lock")["what"]
    assert finding(said, "a merge is under way")["cure"] == "finish it: git merge --continue"


def test_a_checkout_that_git_takes_for_none_is_told(project: Project, agent: Agent) -> None:
    """Work goes on in it, but every git command of a person there is refused."""
    project.git("config", "core.bare", "true")
    trouble = finding(agent.ok("doctor"), "core.bare")
    assert (trouble["level"], trouble["cure"]) == ("warn", "git config core.bare false")
    project.git(*trouble["cure"].split()[1:])
    assert "core.bare" not in agent.ok("doctor")["message"]


def test_a_bare_repository_with_linked_work_trees_is_well(project: Project, tmp_path: Path) -> None:
    """So some people arrange their work trees: there git works, and nothing is to be told."""
    project.git("clone", "--quiet", "--bare", str(project.top), str(tmp_path / "bare.git"))
    linked = tmp_path / "linked"
    project.git("--git-dir", str(tmp_path / "bare.git"), "worktree", "add", "--quiet", str(linked))
    agent = project.agent("there", linked)
    agent.ok("init")
    assert "core.bare" not in agent.ok("doctor")["message"]


@pytest.mark.parametrize("how", ["at", "above", "variable", "worktree"])
def test_it_says_how_the_state_root_was_found(project: Project, how: str, tmp_path: Path) -> None:
    agent = project.agent()
    said = {
        "at": "found at the current directory",
        "above": "found above the current directory",
        "variable": "found through HARNESS_STATE_ROOT",
        "worktree": "found through the repository of this linked worktree",
    }[how]
    if how == "above":
        agent.cwd = project.put("deep/er/file").parent
    elif how == "variable":
        agent.env = {"HARNESS_STATE_ROOT": str(project.top)}
    elif how == "worktree":
        project.git("worktree", "add", "-q", str(tmp_path / "linked"))
        agent.cwd = tmp_path / "linked"
    assert said in finding(agent.ok("doctor"), "state root")["what"]


def test_a_state_root_that_is_none_is_bad(agent: Agent, tmp_path: Path) -> None:
    said = agent.fails(1, "doctor", HARNESS_STATE_ROOT=str(tmp_path / "nowhere"))
    assert finding(said, "HARNESS_STATE_ROOT is no directory")["level"] == "bad"


def test_an_invalid_lease_time_is_bad(agent: Agent) -> None:
    said = agent.fails(1, "doctor", HARNESS_LEASE_SECONDS="soon")
    assert finding(said, "HARNESS_LEASE_SECONDS is 'soon'")["level"] == "bad"


def test_a_list_that_breaks_the_contract_is_bad_and_a_broken_one_is_told(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--validate", "true")
    good = project.file.read_text(encoding="utf-8")
    project.file.write_text(good.replace('"pending"', '"pnding"'), encoding="utf-8")
    assert finding(agent.fails(1, "doctor"), "tasks[0].status")["level"] == "bad"
    project.file.write_text("{", encoding="utf-8")
    assert finding(agent.ok("doctor"), "is not JSON")["cure"] == "harness check --repair"


def test_a_dead_owner_an_ended_lease_and_a_halt_are_told(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    agent = project.agent("w")
    agent.ok("add", "One", "--validate", "true")
    agent.ok("add", "Two", "--validate", "true")
    agent.ok("claim")
    project.edit_task("task-002", halt="CONFIG: a word")
    project.clock.pass_(hours=2)
    agent.die()
    agent.wake()
    said = agent.ok("doctor")
    assert "harness stop --session 1" in finding(said, "session 1 of w is open, but process")["cure"]
    assert finding(said, "the lease of task-001 ended")["cure"] == "harness recover"
    assert finding(said, "task-002 is halted: CONFIG: a word")["cure"] == "harness why task-002"


def test_a_lock_directory_of_a_dead_process_is_told(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    path = mkdir_lock.path_for(project.top)
    assert "stands for the living process" in finding(agent.ok("doctor"), str(path))["what"]
    agent.die()
    agent.wake()
    assert finding(agent.ok("doctor"), str(path))["cure"] == "the next command takes it over"


def test_a_list_that_came_with_a_clone_is_told(project: Project, agent: Agent, tmp_path: Path) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-q", "-m", "List")
    assert finding(agent.ok("doctor"), "tracked by git")["level"] == "warn"
    project.git("clone", "-q", str(project.top), str(tmp_path / "clone"))
    agent.cwd = tmp_path / "clone"
    assert "harness trust" in finding(agent.ok("doctor"), "have not been trusted")["cure"]


def test_hooks_that_are_on_or_off_at_the_wrong_time_are_told(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    assert finding(agent.ok("doctor"), "the hooks are on, but no session is open")["level"] == "warn"
    agent.ok("start")
    (project.top / ".harness-active").unlink()
    assert finding(agent.ok("doctor"), "the hooks are off")["cure"] == "harness start"
    project.without_proofs()
    project.edit_task(status="completed")
    (project.top / ".harness-active").touch()
    assert finding(agent.ok("doctor"), "nothing is left to do")["cure"] == "harness pause"


def test_a_log_that_is_no_file_is_bad(project: Project, agent: Agent) -> None:
    (project.top / "harness-progress.txt").unlink()
    (project.top / "harness-progress.txt").mkdir()
    assert finding(agent.fails(1, "doctor"), "is no regular file")["level"] == "bad"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_root_that_cannot_be_written_is_bad(project: Project, agent: Agent) -> None:
    project.top.chmod(0o555)
    try:
        assert finding(agent.fails(1, "doctor"), "cannot be written by you")["level"] == "bad"
    finally:
        project.top.chmod(0o755)

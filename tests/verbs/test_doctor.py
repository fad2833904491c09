"""`harness doctor`: each trouble with the machine, the repository or the list is told, with its cure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_lib.system import mkdir_lock
from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put
from tests.terminal.pseudo_terminal import read_to_end, typed
from tests.verbs.findings import finding, troubles
from tests.verbs.project import Agent, Project, begin

pytestmark = pytest.mark.usefixtures("asked_once")


def test_a_project_at_work_is_well(project: Project, holder: Agent) -> None:
    said = holder.ok("doctor")
    assert troubles(said) == []
    assert "all is well" in said["message"]
    well = (
        "Python 3",
        "filelock",
        "git version",
        "repository",
        "state root",
        "can be read",
        "a worker of",
        "hooks",
    )
    for words in well:
        assert finding(said, words)["level"] == "ok"
    assert str(project.top) in finding(said, "state root")["what"]


def test_every_trouble_has_a_cure(project: Project, one: Agent) -> None:
    one.ok("start")
    one.die()
    one.wake()
    (project.top / ".harness-active").unlink()
    project.put("harness-init.sh", "true\n")
    project.put(".git/index.lock", "")
    project.put(".git/MERGE_HEAD", project.head + "\n")
    project.git("config", "user.email", "")
    said = one.ok("doctor", HARNESS_DISABLED="1")
    assert len(troubles(said)) >= 7
    assert all(each["cure"] for each in said["found"] if each["level"] != "ok")
    assert finding(said, "does not know who commits")["level"] == "warn"
    assert "index.lock" in finding(said, "git's lock")["what"]
    assert finding(said, "a merge is under way")["cure"] == "finish it: git merge --continue"
    lock = str(mkdir_lock.path_for(project.top))
    assert finding(said, lock)["cure"] == "the next command takes it over"


def test_no_repository_is_bad(tmp_path: Path, bare: Project) -> None:
    said = bare.agent(cwd=tmp_path).fails(1, "doctor")
    assert finding(said, "is not in a git repository")["level"] == "bad"
    assert "harness init" in finding(said, "No harness-tasks.json")["cure"]


def test_no_git_is_bad(agent: Agent, tmp_path: Path) -> None:
    said = agent.fails(1, "doctor", PATH=str(tmp_path))
    levels = [each["level"] for each in said["found"] if "git is not installed" in each["what"]]
    assert levels == ["bad"]


def test_a_git_that_is_too_old_is_bad_or_told(agent: Agent, with_git: Callable[[str], str]) -> None:
    said = agent.fails(1, "doctor", PATH=with_git("2.17.1"))
    assert finding(said, "2.17.1 is too old")["level"] == "bad"
    hit = finding(agent.ok("doctor", PATH=with_git("2.34.1")), "2.34.1")
    assert hit["level"] == "warn"
    assert "`harness demo` need git 2.38" in hit["what"]


def test_a_repository_without_a_commit_is_bad(project: Project, agent: Agent) -> None:
    project.git("checkout", "-q", "--orphan", "empty")
    assert "harness init --git" in finding(agent.fails(1, "doctor"), "has no commit yet")["cure"]


def test_a_checkout_that_git_takes_for_none_is_told(project: Project, agent: Agent) -> None:
    """Work goes on in it, but every git command of the user there is refused."""
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


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("HARNESS_STATE_ROOT", "/no/where", "HARNESS_STATE_ROOT is not a directory"),
        ("HARNESS_LEASE_SECONDS", "soon", "HARNESS_LEASE_SECONDS is 'soon'"),
    ],
)
def test_a_variable_that_makes_no_sense_is_bad(agent: Agent, name: str, value: str, words: str) -> None:
    assert finding(agent.fails(1, "doctor", **{name: value}), words)["level"] == "bad"


def test_a_list_that_breaks_the_contract_is_bad_and_a_torn_one_is_told(project: Project, one: Agent) -> None:
    project.edit_task(status="pnding")
    assert finding(one.fails(1, "doctor"), "tasks[0].status")["level"] == "bad"
    project.file.write_text("{")
    assert finding(one.ok("doctor"), "is not JSON")["cure"] == "harness check --repair"


def test_a_dead_owner_an_ended_lease_and_a_halt_are_told(shared: Project) -> None:
    agent = shared.agent("w")
    agent.ok("add", "One", "--validate", "true")
    agent.ok("add", "Two", "--validate", "true")
    agent.ok("claim")
    shared.edit_task("task-002", halt="CONFIG: a word")
    shared.clock.pass_(hours=2)
    agent.die()
    agent.wake()
    said = agent.ok("doctor")
    assert "harness stop --session 1" in finding(said, "session 1 of w is open, but process")["cure"]
    assert finding(said, "the lease of task-001 ended")["cure"] == "harness recover"
    assert finding(said, "task-002 is halted: CONFIG: a word")["cure"] == "harness show task-002"


def test_a_list_that_came_with_a_clone_is_told(project: Project, one: Agent, tmp_path: Path) -> None:
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-q", "-m", "List")
    assert finding(one.ok("doctor"), "tracked by git")["level"] == "warn"
    project.git("clone", "-q", str(project.top), str(tmp_path / "clone"))
    one.cwd = tmp_path / "clone"
    assert "harness trust" in finding(one.ok("doctor"), "have not been trusted")["cure"]


def test_hooks_that_are_on_or_off_at_the_wrong_time_are_told(project: Project, one: Agent) -> None:
    assert finding(one.ok("doctor"), "the hooks are on, but no session is open")["level"] == "warn"
    one.ok("start")
    (project.top / ".harness-active").unlink()
    assert finding(one.ok("doctor"), "the hooks are off")["cure"] == "harness start"
    project.without_proofs()
    project.edit_task(status="completed")
    (project.top / ".harness-active").touch()
    assert finding(one.ok("doctor"), "nothing is left to do")["cure"] == "harness pause"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_root_that_cannot_be_written_is_bad(project: Project, agent: Agent) -> None:
    project.top.chmod(0o555)
    try:
        assert finding(agent.fails(1, "doctor"), "cannot be written by you")["level"] == "bad"
    finally:
        project.top.chmod(0o755)


# -- an installed harness beside packages that somebody has put back to versions from before it


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `harness` find a rich and a jsonschema without what it imports of them."""
    place = tmp_path / "packages"
    for name, version in {"jsonschema": "3.2.0", "rich": "10.0.0"}.items():
        put(place / name / "__init__.py", "")
        put(place / name / "console.py", "")
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        put(place / f"{name}-{version}.dist-info" / "METADATA", metadata)
    monkeypatch.setenv("PYTHONPATH", f"{place}{os.pathsep}{CHECKOUT}")


@pytest.mark.usefixtures("older")
def test_what_needs_them_names_the_package_and_doctor_the_version(project: Project) -> None:
    project.edit(created="2026-11-29T09:00:00Z")

    harness = (sys.executable, "-m", "harness_lib")
    said = run_to_end([*harness, "check"], cwd=project.top)

    assert said.returncode == 7
    assert "harness: ENV_SETUP: The package jsonschema cannot be used: " in said.stderr
    assert "hint: See what harness needs: " in said.stderr
    assert not list((project.top / ".harness").glob("bug-*"))
    found = run_to_end([*harness, "doctor"], cwd=project.top).stdout
    assert "bad   too old: jsonschema 3.2.0 (harness needs 4.18), rich 10.0.0 (harness needs 13.7)" in found


@pytest.mark.usefixtures("older")
def test_a_reply_on_a_terminal_only_loses_its_colours(project: Project) -> None:
    begin(project.agent())
    with typed(project.top, "show", "task-001") as (_process, ours):
        said = read_to_end(ours)
    assert "task-001 [in_progress] One" in said
    assert "Traceback" not in said

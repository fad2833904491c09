"""Git missing, locked or led astray, HEAD moved or orphaned: refused with the way on, and nothing lost."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin

# -- no git, or hardly any


def test_a_repository_that_is_gone_is_env_setup(project: Project, one: Agent) -> None:
    """Its list is shown all the same."""
    shutil.rmtree(project.top / ".git")
    before = project.state["tasks"]

    for verb in ("start", "claim"):
        error = one.fails(7, verb)["error"]
        assert str(project.top) in error["message"]
        assert error["hint"]
    assert "[pending] task-001: One" in one("status").out
    assert "is valid (1 task)" in one("check").out
    assert project.state["tasks"] == before


def test_without_the_program_git(project: Project, one: Agent, tmp_path: Path) -> None:
    error = one.fails(7, "claim", PATH=str(tmp_path / "nothing"))["error"]

    assert "git is not installed" in error["message"]
    assert project.task()["status"] == "pending"


def test_before_the_first_commit_nothing_can_be_claimed(tmp_path: Path, make_project: Make) -> None:
    sh(tmp_path, "init", "-q", "-b", "main", "young")
    project = Project(tmp_path / "young")
    agent = make_project(bare=True).agent("young", project.top)
    project.put("draft.txt", "draft\n")
    agent.ok("init")
    agent.ok("add", "One", "--validate", "true")

    error = agent.fails(7, "claim")["error"]

    assert "no commit yet" in error["message"]
    assert error["hint"].endswith(": git commit --allow-empty -m Start")
    assert project.task()["status"] == "pending"
    assert project.state["sessions"] == []
    project.git("config", "user.useConfigOnly", "true")
    hint = agent.fails(7, "claim", GIT_CONFIG_GLOBAL=os.devnull)["error"]["hint"]
    project.git(*shlex.split(hint.partition(": git ")[2]))
    agent.works()
    assert project.read("draft.txt") == "draft\n"
    assert project.in_commit() == []
    project.close()


def test_a_bare_repository_is_no_place(tmp_path: Path, make_project: Make) -> None:
    sh(tmp_path, "init", "-q", "--bare", "bare.git")
    agent = make_project(bare=True).agent("bare", tmp_path / "bare.git")

    for words in (("init",), ("init", "--git")):
        hint = agent.fails(7, *words)["error"]["hint"]
        assert hint.endswith(f"git clone {tmp_path}/bare.git {tmp_path}/bare")
        assert not (tmp_path / "bare.git/harness-tasks.json").exists()
        assert agent.fails(2, "status")["error"]["hint"] == hint
    assert not (tmp_path / "bare.git/.git").exists()


def test_nobody_makes_a_repository_in_another_one(tmp_path: Path, make_project: Make) -> None:
    """Neither among the files of git nor in a directory of a repository that has no commit yet."""
    sh(tmp_path, "init", "-q", "-b", "main", "young")
    (tmp_path / "young/sub").mkdir()
    people = make_project(bare=True)
    inside = people.agent("inside", tmp_path / "young/.git")

    assert inside.fails(7, "init", "--git")["error"]["hint"].endswith(f": cd {tmp_path}/young")
    people.agent("below", tmp_path / "young/sub").ok("init", "--git")

    assert not (tmp_path / "young/sub/.git").exists()
    assert sh(tmp_path / "young", "log", "--format=%s") == "Begin"


def test_what_is_said_to_make_the_first_list_works_literally(tmp_path: Path, make_project: Make) -> None:
    (tmp_path / "nowhere").mkdir()
    agent = make_project(bare=True).agent("new", tmp_path / "nowhere")

    hint = agent.fails(2, "status")["error"]["hint"]

    assert hint == "Make one with: harness init --git"
    agent.ok("init", "--git")


# -- locked, or in the middle of something


@pytest.mark.parametrize("lock", ["index.lock", *for_release("HEAD.lock", "refs/heads/main.lock")])
@pytest.mark.parametrize("passes", [True, *for_release(False)])
def test_where_another_program_has_git_locked_nothing_is_changed(
    project: Project, agent: Agent, monkeypatch: pytest.MonkeyPatch, lock: str, passes: bool
) -> None:
    """An editor may hold the lock: it is named, never removed, and the same command works afterwards."""
    monkeypatch.setattr("harness_lib.system.git.advance.PATIENCE_SECONDS", 0.1)
    begin(agent, "test -f done" if passes else "false")
    project.put("done")
    base, before = project.head, project.files
    file = project.top / ".git" / lock
    file.touch()

    error = agent.fails(5, "finish")["error"]

    assert str(file) in error["message"]
    assert file.exists()
    assert (project.head, project.files) == (base, before)
    assert project.task()["status"] == "in_progress"
    assert project.task()["attempts"] == 0
    file.unlink()
    agent("finish")
    assert project.task()["status"] == ("completed" if passes else "failed")
    assert project.task()["attempts"] == (0 if passes else 1)
    assert project.git("status", "--porcelain") == ""


# -- who calls, and as whom


def test_the_variables_of_a_calling_git_do_not_lead_elsewhere(project: Project, agent: Agent) -> None:
    """Typed inside a git hook or alias, GIT_DIR and GIT_INDEX_FILE name another repository."""
    begin(agent)
    project.put("done")

    agent.ok("finish", GIT_DIR="/nowhere/.git", GIT_INDEX_FILE="/nowhere/index", GIT_WORK_TREE="/nowhere")

    assert "done" in project.in_commit()


def test_a_machine_without_an_identity_gets_one(project: Project, agent: Agent, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    begin(agent)
    agent.finishes({"done": "x\n"})

    assert project.git("log", "-1", "--format=%an <%ae>") == "harness <harness@localhost>"
    (named,) = project.task()["look_at"]
    assert (
        "was committed by harness@localhost, as git does not know you: git config --global user.name NAME"
        in named
    )


# -- HEAD moved or orphaned, or another branch: refused with the way on, or worked with, and nothing lost


def test_head_moved_while_the_check_ran_is_refused_and_kept(project: Project, agent: Agent) -> None:
    """Their commit must not be undone by a tree that was captured before it."""
    begin(agent, "echo theirs > theirs.txt; git add theirs.txt; git commit -qm theirs; test -f done")
    error = agent.finishes({"done": "x\n"}, code=8)["error"]

    assert "HEAD is at" in error["message"]
    assert error["hint"].endswith("Then type: harness finish task-001")
    assert project.git("show", "HEAD:theirs.txt") == "theirs"
    assert project.read("done") == "x\n"
    task = project.task()
    assert (task["status"], task["attempts"], task.get("intent")) == ("in_progress", 0, None)
    project.edit_task(validation={"command": "true"}, gate=None, worktree=None)
    agent.ok("finish")
    assert project.in_commit() == ["done", "theirs.txt", "tracked.txt"]


def test_an_orphan_branch_that_a_rollback_leaves_is_no_place_to_go_back_to(
    project: Project, agent: Agent
) -> None:
    begin(agent, "true")
    project.git("checkout", "-q", "--orphan", "empty")

    (warning,) = agent.ok("fail", "task-001", "--category", "TASK_EXEC", "--message", "no")["warnings"]

    assert warning == "HEAD was on empty and is on main again, where task-001 was claimed."


def test_an_orphan_branch_at_finish_is_refused_with_the_way_back(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    base = project.head
    project.git("checkout", "-q", "--orphan", "empty")
    hint = agent.finishes({"loose.txt": "x\n"}, code=8)["error"]["hint"]

    assert project.read("loose.txt") == "x\n"
    assert hint.endswith("git symbolic-ref HEAD refs/heads/main")
    project.git("symbolic-ref", "HEAD", "refs/heads/main")
    agent.ok("finish")
    assert project.git("rev-parse", "HEAD^") == base
    assert project.in_commit() == ["loose.txt", "tracked.txt"]

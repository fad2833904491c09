"""Git in every state a person can leave it in: refused with the way on, or worked with, and nothing lost."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.ops.conftest import Make
from tests.ops.project import Agent, Project
from tests.system.gitrepo import NASTY, put, sh

WORKING = (("start",), ("claim",), ("status",))


def begin(agent: Agent, check: str = "test -f done") -> None:
    agent.ok("add", "One", "--validate", check)
    agent.ok("claim")


# -- no git, or hardly any


def test_a_repository_that_is_gone_is_env_setup(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    shutil.rmtree(project.top / ".git")
    before = project.state["tasks"]

    for verb in ("start", "claim"):
        error = agent.fails(7, verb)["error"]
        assert str(project.top) in error["message"]
        assert error["hint"]
    agent.ok("status")
    assert project.state["tasks"] == before


def test_without_the_program_git(project: Project, agent: Agent, tmp_path: Path) -> None:
    agent.ok("add", "One", "--validate", "true")

    error = agent.fails(7, "claim", PATH=str(tmp_path / "nothing"))["error"]

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
    assert "git commit --allow-empty" in error["hint"]
    assert project.task()["status"] == "pending"
    project.git("commit", "-q", "--allow-empty", "-m", "Start")
    agent.ok("claim")
    agent.ok("finish")
    assert project.read("draft.txt") == "draft\n"
    assert project.in_commit() == []
    project.close()


def test_a_bare_repository_is_no_place(tmp_path: Path, make_project: Make) -> None:
    sh(tmp_path, "init", "-q", "--bare", "bare.git")
    agent = make_project(bare=True).agent("bare", tmp_path / "bare.git")

    agent.fails(7, "init")

    assert not (tmp_path / "bare.git" / "harness-tasks.json").exists()


# -- where HEAD is


@pytest.mark.parametrize("passes", [True, False])
def test_a_detached_head_stays_detached(project: Project, agent: Agent, passes: bool) -> None:
    base = project.head
    project.git("checkout", "-q", "--detach")
    begin(agent, "test -f done" if passes else "false")
    project.put("done")

    agent("finish")

    assert project.git("rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    assert (project.git("rev-parse", "HEAD^") if passes else project.head) == base
    assert project.git("rev-parse", "main") == base


def test_head_moved_by_somebody_while_the_check_ran_is_refused_and_nothing_lost(
    project: Project, agent: Agent
) -> None:
    """Their commit must not be undone by a tree that was captured before it."""
    begin(agent, "echo theirs > theirs.txt; git add theirs.txt; git commit -qm theirs; test -f done")
    project.put("done")

    error = agent.fails(8, "finish")["error"]

    assert "HEAD is at" in error["message"]
    assert project.git("show", "HEAD:theirs.txt") == "theirs"
    assert project.read("done") == "x\n"
    assert project.task()["status"] == "in_progress"
    assert project.task()["attempts"] == 0
    project.edit_task(validation={"command": "true"}, gate=None, worktree=None)
    agent.ok("finish")
    assert project.in_commit() == ["done", "theirs.txt", "tracked.txt"]


def test_a_commit_made_by_somebody_during_a_failed_attempt_is_kept(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    base = project.head
    project.put("theirs.txt")
    theirs = project.commit("Somebody else's commit")

    reply = agent.fails(1, "finish")

    assert project.head == base
    assert project.git("merge-base", "--is-ancestor", theirs, reply["rescue"]) == ""


def test_a_branch_switched_during_the_attempt_is_left_where_it_was(project: Project, agent: Agent) -> None:
    project.git("branch", "other")
    begin(agent, "false")
    base = project.head
    project.git("checkout", "-q", "other")
    project.put("on-other.txt")
    other = project.commit("Committed on the other branch")
    project.put("loose.txt")

    reply = agent.fails(1, "finish")

    assert project.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert project.head == base
    assert project.git("rev-parse", "other") == other
    assert "loose.txt" in project.in_commit(reply["rescue"])


def test_a_branch_that_was_deleted_during_the_attempt_comes_back(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    base = project.head
    project.git("checkout", "-q", "-b", "renamed")
    project.git("branch", "-q", "-D", "main")

    agent.fails(1, "finish")

    assert project.git("rev-parse", "main") == base
    assert project.git("rev-parse", "renamed") == base


def test_history_rewritten_under_the_attempt_is_rolled_back_to_its_base(
    project: Project, agent: Agent
) -> None:
    begin(agent, "false")
    base = project.head
    project.git("commit", "-q", "--amend", "-m", "Rewritten")

    agent.fails(1, "finish")

    assert project.head == base


def test_an_orphan_branch_without_a_commit_during_the_attempt(project: Project, agent: Agent) -> None:
    begin(agent, "false")
    base = project.head
    project.git("checkout", "-q", "--orphan", "empty")
    project.put("loose.txt")

    reply = agent.fails(1, "finish")

    assert project.head == base
    assert "loose.txt" in project.in_commit(reply["rescue"])
    assert sorted(project.files) == ["tracked.txt"]


def test_an_orphan_branch_at_finish_is_refused_with_the_way_back(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    base = project.head
    project.git("checkout", "-q", "--orphan", "empty")
    project.put("loose.txt")

    hint = agent.fails(8, "finish")["error"]["hint"]

    assert project.read("loose.txt") == "x\n"
    assert hint.endswith("git symbolic-ref HEAD refs/heads/main")
    project.git("symbolic-ref", "HEAD", "refs/heads/main")
    agent.ok("finish")
    assert project.git("rev-parse", "HEAD^") == base
    assert project.in_commit() == ["loose.txt", "tracked.txt"]


def test_a_base_commit_that_git_has_thrown_away(project: Project, agent: Agent) -> None:
    project.git("checkout", "-q", "-b", "side")
    project.put("side.txt")
    base = project.commit("A base to lose")
    begin(agent, "false")
    project.git("checkout", "-q", "main")
    project.git("branch", "-q", "-D", "side")
    (project.top / ".git" / "objects" / base[:2] / base[2:]).unlink()
    project.put("work.txt")
    before = project.files

    reply = agent.fails(1, "finish")

    assert project.files == before
    assert project.task()["attempts"] == 3
    assert "gone" in reply["warnings"][0]


# -- locked, or in the middle of something


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
@pytest.mark.parametrize("passes", [True, False])
def test_where_another_program_has_git_locked_nothing_is_changed(
    project: Project, agent: Agent, monkeypatch: pytest.MonkeyPatch, lock: str, passes: bool
) -> None:
    """An editor may hold the lock: it is named, never removed, and the same command works afterwards."""
    monkeypatch.setattr("harness_lib.system.restore.PATIENCE_SECONDS", 0.1)
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


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick", "revert", "bisect"])
def test_an_operation_under_way_refuses_a_claim(project: Project, agent: Agent, what: str) -> None:
    project.put("tracked.txt", "two\n")
    project.commit("Two")
    project.git("checkout", "-q", "-b", "side", "HEAD^")
    project.put("tracked.txt", "three\n")
    side = project.commit("Three")
    project.git("checkout", "-q", "main")
    agent.ok("add", "One", "--validate", "true")
    how = {"revert": ("HEAD^", "--no-edit"), "bisect": ("start",)}.get(what, (side,))
    sh(project.top, what, *how, check=False)
    before = project.files

    error = agent.fails(8, "claim")["error"]

    assert what in error["message"]
    assert project.files == before
    assert project.task()["status"] == "pending"


@pytest.mark.parametrize("what", ["merge", "rebase", "cherry-pick"])
def test_an_operation_that_the_attempt_began_is_rolled_back_with_it(
    project: Project, agent: Agent, what: str
) -> None:
    project.put("tracked.txt", "two\n")
    base = project.commit("Two")
    project.git("checkout", "-q", "-b", "side", "HEAD^")
    project.put("tracked.txt", "three\n")
    side = project.commit("Three")
    project.git("checkout", "-q", "main")
    begin(agent, "false")
    sh(project.top, what, side, check=False)

    agent.fails(1, "finish")

    assert project.head == base
    assert project.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert project.git("rev-parse", "side") == side
    assert project.git("status", "--porcelain") == ""
    assert project.read("tracked.txt") == "two\n"
    agent.ok("claim")


# -- what is in it


def test_submodules_are_left_alone(project: Project, agent: Agent, make_project: Make) -> None:
    library = make_project("library", bare=True)
    sh(project.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.top), "lib")
    project.commit("With a submodule")
    begin(agent, "false")
    put(project.top / "lib" / "work.txt", "in the submodule\n")
    put(project.top / "lib" / "tracked.txt", "changed in the submodule\n")
    project.put("work.txt")

    agent.fails(1, "finish")

    assert (project.top / "lib" / "work.txt").read_text(encoding="utf-8") == "in the submodule\n"
    assert (project.top / "lib" / "tracked.txt").read_text(encoding="utf-8") == "changed in the submodule\n"
    assert not (project.top / "work.txt").exists()


def test_a_new_commit_in_a_submodule_is_the_attempts_work(
    project: Project, agent: Agent, make_project: Make
) -> None:
    library = make_project("library", bare=True)
    sh(project.top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library.top), "lib")
    project.commit("With a submodule")
    begin(agent, "true")
    put(project.top / "lib" / "new.txt", "new\n")
    sh(project.top / "lib", "add", "-A")
    sh(project.top / "lib", "commit", "-qm", "In the library")

    agent.ok("finish")

    assert project.git("rev-parse", "HEAD:lib") == sh(project.top / "lib", "rev-parse", "HEAD")


def test_a_repository_inside_the_work_tree_survives(project: Project, agent: Agent) -> None:
    """An agent that clones something into the project: a clean would refuse too, and so do we."""
    begin(agent, "false")
    sh(project.top, "init", "-q", "nested")
    put(project.top / "nested" / "precious.txt", "precious\n")
    sh(project.top / "nested", "add", "-A")
    sh(project.top / "nested", "commit", "-qm", "x")
    put(project.top / "nested" / "loose.txt", "loose\n")

    agent.fails(1, "finish")

    assert (project.top / "nested" / "precious.txt").exists()
    assert (project.top / "nested" / "loose.txt").exists()


@pytest.mark.parametrize("name", ["harness-tasks.json", "harness-progress.txt", ".harness-active"])
@pytest.mark.parametrize("passes", [True, False])
def test_a_tracked_harness_file_survives_commit_and_rollback(
    project: Project, agent: Agent, name: str, passes: bool
) -> None:
    agent.ok("add", "One", "--validate", "test -f done" if passes else "false")
    project.git("add", "-f", name)
    project.commit_only("Somebody tracks it")
    committed = project.git("show", f"HEAD:{name}")
    agent.ok("claim")
    project.put("done")

    agent("finish")

    assert project.task()["status"] == ("completed" if passes else "failed")
    assert len(project.log) >= 4
    assert project.git("show", f"HEAD:{name}") == committed
    assert project.git("diff", "--cached", "--name-only") == ""


def test_what_git_ignores_is_never_touched(project: Project, agent: Agent) -> None:
    project.put(".gitignore", "*.log\nbuild/\n")
    project.commit()
    project.put("old.log", "old\n")
    project.put("build/old.o", "old\n")
    begin(agent, "false")
    project.put("old.log", "appended\n")
    project.put("build/new.o", "new\n")
    project.put(".gitignore", "")

    agent.fails(1, "finish")

    assert project.read("old.log") == "appended\n"
    assert project.read("build/old.o") == "old\n"
    assert project.read("build/new.o") == "new\n"
    assert project.read(".gitignore") == "*.log\nbuild/\n"


@pytest.mark.parametrize("name", NASTY, ids=ascii)
def test_any_name_is_rescued_removed_and_given_back(project: Project, agent: Agent, name: str) -> None:
    project.put(f"mine/{name}", "mine\n")
    begin(agent, "false")
    project.put(f"mine/{name}", "spoilt\n")
    project.put(f"made/{name}", "made\n")

    reply = agent.fails(1, "finish")

    assert project.files == {"tracked.txt": ("file", b"one\n"), f"mine/{name}": ("file", b"mine\n")}
    assert project.git("show", f"{reply['rescue']}:made/{name}") == "made"
    assert project.git("show", f"{reply['rescue']}:mine/{name}") == "spoilt"


def test_untracked_files_that_the_attempt_deleted_come_back(project: Project, agent: Agent) -> None:
    project.put("mine/secret.txt", "secret\n").chmod(0o600)
    (project.top / "mine/link").symlink_to("/nowhere")
    tool = project.put("mine/tool", "#!/bin/sh\n")
    tool.chmod(0o755)
    begin(agent, "false")
    before = project.files
    shutil.rmtree(project.top / "mine")

    agent.fails(1, "finish")

    assert project.files == before
    assert stat.S_IMODE((project.top / "mine/secret.txt").stat().st_mode) == 0o600
    assert os.access(tool, os.X_OK)


def test_a_directory_in_the_place_of_a_file_and_the_other_way_round(project: Project, agent: Agent) -> None:
    project.put("dir/inner.txt", "inner\n")
    project.commit()
    project.put("mine.txt", "mine\n")
    before = project.files
    begin(agent, "false")
    for name in ("tracked.txt", "mine.txt"):
        (project.top / name).unlink()
        project.put(f"{name}/file", "x\n")
    shutil.rmtree(project.top / "dir")
    project.put("dir", "a file\n")

    agent.fails(1, "finish")

    assert project.files == before


def test_line_end_conversion_does_not_make_everything_look_changed(project: Project, agent: Agent) -> None:
    project.put(".gitattributes", "* text=auto eol=crlf\n")
    project.put("text.txt", b"one\r\ntwo\r\n")
    project.commit()
    begin(agent, "false")
    project.put("text.txt", b"changed\r\n")

    agent.fails(1, "finish")

    assert (project.top / "text.txt").read_bytes() == b"one\r\ntwo\r\n"
    agent.ok("claim")


def test_a_stash_of_a_person_is_not_touched(project: Project, agent: Agent) -> None:
    project.put("tracked.txt", "stashed\n")
    project.git("stash")
    begin(agent, "false")
    project.put("work.txt")

    agent.fails(1, "finish")

    assert len(project.git("stash", "list").splitlines()) == 1


def test_the_variables_of_a_calling_git_do_not_lead_elsewhere(project: Project, agent: Agent) -> None:
    """Typed inside a git hook or alias, GIT_DIR and GIT_INDEX_FILE name another repository."""
    begin(agent)
    project.put("done")

    agent.ok("finish", GIT_DIR="/nowhere/.git", GIT_INDEX_FILE="/nowhere/index", GIT_WORK_TREE="/nowhere")

    assert "done" in project.in_commit()


def test_a_machine_without_an_identity_gets_one(project: Project, agent: Agent, home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n", encoding="utf-8")
    begin(agent)
    project.put("done")

    agent.ok("finish")

    assert project.git("log", "-1", "--format=%an <%ae>") == "harness <harness@localhost>"

"""An attempt builds on its base: what was there before it stays, and what leaves with it is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness_lib.attempts import target_branch
from harness_lib.errors import EnvSetupError
from harness_lib.system.git.repository import Git
from tests.conftest import for_release
from tests.system.git.gitrepo import commit_all, sh
from tests.verbs.project import Agent, Project, begin


@pytest.mark.parametrize("how", ["amend", "orphan", *for_release("reset")])
def test_what_no_longer_builds_on_its_base_is_not_committed(project: Project, agent: Agent, how: str) -> None:
    project.commit("First of mine", files={"first": "x\n"})
    project.put("second")
    base = project.commit("Second of mine")
    begin(agent)
    if how == "reset":
        project.git("reset", "-q", "--hard", "HEAD~2")
    elif how == "amend":
        project.git("commit", "-q", "--amend", "-m", "Amended")
    else:
        project.git("checkout", "-q", "--orphan", "fresh")
        project.git("commit", "-q", "-m", "Another root")
    project.put("done")
    theirs = project.head

    reply = agent.fails(1, "finish")

    assert project.head == base
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert base[:12] in reply["message"]
    assert project.task()["status"] == "failed"
    rescue = project.refs()[0]
    assert project.git("show", f"{rescue}:done") == "x"
    assert theirs in project.git("rev-list", rescue)


def test_commits_that_a_failed_attempt_takes_off_are_named(project: Project, agent: Agent) -> None:
    begin(agent)
    project.commit("Made by the user", files={"one": "x\n"})
    project.commit("And another one", files={"two": "x\n"})

    reply = agent.fails(1, "finish")

    warning = next(line for line in reply["warnings"] if "2 commits left main" in line)
    assert "Made by the user" in warning
    assert "And another one" in warning
    assert "harness rescue show task-001/1" in warning
    assert project.grep("WARN", "2 commits left main")
    shown = agent.ok("rescue", "show", "task-001/1")["message"]
    assert "one" in shown
    assert "two" in shown
    back = re.search(r"git cherry-pick (?!COMMIT)'?([^' ]+)'?$", warning)
    assert back
    assert "refs/harness/rescue/task-001/1" in back[1]
    project.git("cherry-pick", back[1])
    assert project.git("log", "--format=%s", "-2").splitlines() == ["And another one", "Made by the user"]


def test_commits_that_leave_a_branch_it_has_left_are_named(project: Project, agent: Agent) -> None:
    begin(agent)
    project.commit("Made on main", files={"one": "x\n"})
    project.git("checkout", "-q", "-b", "other", "HEAD~1")

    warnings = agent.fails(1, "finish")["warnings"]

    assert any("1 commit left main" in warning and "Made on main" in warning for warning in warnings)


def test_merges_that_left_with_an_attempt_come_back_as_they_were(project: Project, agent: Agent) -> None:
    project.git("checkout", "-q", "-b", "side")
    project.commit("Of the side", files={"side": "x\n"})
    project.git("checkout", "-q", "main")
    begin(agent)
    project.git("merge", "-q", "--no-ff", "-m", "Merge by the user", "side")

    reply = agent.fails(1, "finish")

    warning = next(line for line in reply["warnings"] if "left main" in line)
    back = re.search(r"git merge (\S+)$", warning)
    assert back, warning
    project.git("merge", "-q", "--ff-only", back[1].strip("'"))
    assert (project.top / "side").exists()


def _published(project: Project, tmp_path: Path) -> Path:
    """Give the project a remote, and return a clone in which somebody else works."""
    remote, other = tmp_path / "remote.git", tmp_path / "other"
    sh(tmp_path, "init", "-q", "--bare", "-b", "main", str(remote))
    project.git("remote", "add", "origin", str(remote))
    project.git("push", "-q", "-u", "origin", "main")
    sh(tmp_path, "clone", "-q", str(remote), str(other))
    return other


def _push(other: Path, name: str) -> str:
    commit_all(other, f"Push {name}", {name: "theirs\n"})
    sh(other, "push", "-q")
    return sh(other, "rev-parse", "HEAD")


def test_only_what_was_pulled_meanwhile_stays(project: Project, agent: Agent, tmp_path: Path) -> None:
    other = _published(project, tmp_path)
    begin(agent)
    pulled = _push(other, "theirs.txt")
    project.git("pull", "-q", "--ff-only")
    _push(other, "fetched.txt")
    project.git("fetch", "-q")
    project.commit("Of the attempt", files={"mine.txt": "x\n"})
    reply = agent.finishes({"late": "x\n"}, code=1)

    assert project.head == pulled
    assert project.read("theirs.txt") == "theirs\n"
    assert not (project.top / "mine.txt").exists()
    assert any(
        "1 commit left main" in warning and "Of the attempt" in warning for warning in reply["warnings"]
    )
    assert project.git("status", "--porcelain") == ""


def test_a_merge_that_brought_it_in_stays_with_it(project: Project, agent: Agent, tmp_path: Path) -> None:
    other = _published(project, tmp_path)
    project.commit("Not pushed yet", files={"unpushed": "x\n"})
    begin(agent)
    pulled = _push(other, "theirs.txt")
    project.git("pull", "-q", "--no-rebase", "--no-edit")
    merged = project.head
    project.commit("Of the attempt", files={"mine.txt": "x\n"})

    agent.fails(1, "finish")

    assert project.head == merged
    assert pulled in project.git("rev-list", "HEAD")
    assert project.read("unpushed") == "x\n"
    assert not (project.top / "mine.txt").exists()


@pytest.mark.parametrize("pushed", [True, *for_release(False)])
def test_a_base_that_was_merged_into_another_history_stays_with_what_a_remote_has(
    project: Project, agent: Agent, tmp_path: Path, *, pushed: bool
) -> None:
    _published(project, tmp_path)
    begin(agent)
    base = project.head
    project.git("checkout", "-q", "--orphan", "other")
    project.git("commit", "-q", "-m", "Another root")
    if pushed:
        project.git("push", "-q", "origin", "other")
    project.git("merge", "-q", "--allow-unrelated-histories", "-m", "Join", "main")
    joined = project.head
    project.git("branch", "-f", "main", joined)
    project.git("checkout", "-q", "main")

    agent.fails(1, "finish")

    assert project.head == (joined if pushed else base)


@pytest.mark.parametrize("then", ["finish", "fail", "release", "start"])
def test_a_branch_that_was_renamed_is_still_the_attempts(project: Project, agent: Agent, then: str) -> None:
    begin(agent)
    base = project.head
    project.git("branch", "-m", "main", "first")
    project.commit("Of task-001", files={"work": "x\n"})
    project.git("branch", "-m", "first", "trunk")

    if then == "start":
        agent.die()
    if then == "finish":
        reply = agent.fails(1, "finish")
    else:
        reply = agent.ok(then, *(("--message", "no") if then == "fail" else ()))

    assert project.git("for-each-ref", "--format=%(refname:short)", "refs/heads") == "trunk"
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/trunk"
    assert "main" not in " ".join(reply["warnings"])
    assert "git branch -d" not in str(reply)
    if then == "start":
        assert agent.finishes({"done": "x\n"})["warnings"] == []
        assert project.task()["status"] == "completed"
    else:
        assert project.head == base


def test_work_that_its_branch_has_is_not_to_be_brought_there(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    project.git("checkout", "-q", "-b", "other")

    assert "Bring it over" not in str(agent.ok("finish"))
    assert "another branch" not in agent("status").out


def test_work_of_a_deleted_branch_says_how_to_have_it_again(project: Project, agent: Agent) -> None:
    begin(agent)
    project.git("checkout", "-q", "-b", "other")
    project.git("branch", "-D", "main")

    (warning,) = agent.finishes({"done": "x\n"})["warnings"]

    command = warning.rpartition("Bring it over: ")[2]
    assert command == "git branch main other"
    project.git(*command.split()[1:])
    assert project.git("rev-parse", "main") == project.head


def test_commits_that_leave_every_file_as_it_was_are_kept(project: Project, agent: Agent) -> None:
    begin(agent)
    project.git("commit", "-q", "--allow-empty", "-m", "What I have tried")
    theirs = project.head

    assert theirs in project.git("rev-list", agent.fails(1, "finish")["rescue"])


def test_a_branch_that_had_that_name_before_is_left_alone(project: Project, agent: Agent) -> None:
    project.git("branch", "-m", "main", "old")
    project.git("checkout", "-q", "-b", "main")
    begin(agent)
    project.git("checkout", "-q", "old")
    project.git("branch", "-D", "main")
    theirs = project.commit("Of the old one", files={"old": "x\n"})

    agent.fails(1, "finish")

    assert project.git("rev-parse", "old") == theirs
    assert project.git("symbolic-ref", "HEAD") == "refs/heads/main"


# -- without a commit that it can go back to, what is wrong with the branch is said


@pytest.mark.parametrize(
    ("broken", "said", "typed"),
    [
        (
            ("symbolic-ref", "HEAD", "refs/heads/empty"),
            "The branch empty of {top} has no commit; there are others, main for one.",
            "git switch main",
        ),
        (
            ("update-ref", "-d", "refs/heads/main"),
            "The branch main is gone; it stood at {head}.",
            "git branch main {head}",
        ),
    ],
    ids=["never had one", "is gone"],
)
def test_a_branch_without_a_commit_is_named_with_its_cure(
    project: Project, agent: Agent, broken: tuple[str, ...], said: str, typed: str
) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    head = project.head
    project.git(*broken)

    refused = agent("claim")

    assert refused.code == 7
    assert said.format(top=project.top, head=head[:12]) in refused.err
    cure = typed.format(head=head)
    assert cure in refused.err
    project.git(*cure.split()[1:])
    agent.ok("claim")


@pytest.mark.parametrize(
    ("broken", "said", "typed"),
    [
        (
            ("branch", "-m", "main", "trunk"),
            "The branch main is called trunk now, and there is work for main.",
            "git branch -m trunk main",
        ),
        (
            ("branch", "-D", "main"),
            "The branch main is gone, and there is work for it.",
            "git branch main COMMIT",
        ),
    ],
    ids=["renamed", "deleted"],
)
def test_a_branch_that_work_is_for_is_named_with_its_cure_although_another_one_is_checked_out(
    project: Project, broken: tuple[str, ...], said: str, typed: str
) -> None:
    """The user did it while a run was at work: to go to another branch would help nobody."""
    project.git("checkout", "-q", "-b", "other")
    head = project.head
    project.git(*broken)
    git = Git.open(project.top)

    with pytest.raises(EnvSetupError) as caught:
        target_branch.tip(git, "refs/heads/main")

    assert caught.value.message == said
    assert typed in (caught.value.hint or "")
    project.git(*typed.replace("COMMIT", head).split()[1:])
    assert target_branch.tip(git, "refs/heads/main") == head

"""Finished work waits while the user's checkout is in use, goes over by itself, and is never lost between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.attempts import pending_merges, target_branch
from harness_lib.core.context import Context
from tests.runs.workshop import HURRIED, Workshop
from tests.system.git.gitrepo import sh
from tests.verbs.project import Agent, Time


def test_work_waits_beside_a_changed_checkout_and_is_joined_with_it(workshop: Workshop) -> None:
    workshop.file_task("one")
    workshop.put("README.md", "the user is writing\n")
    before = workshop.sh("rev-parse", "main")

    said = workshop.ends(9, "--json")

    assert json.loads(said.stdout.splitlines()[-1])["stop"] == {"reason": "waiting"}
    assert "git merge harness/main" in said.stdout
    assert "git merge harness/main" in workshop("status").out
    assert workshop.sh("rev-parse", "main") == before
    assert workshop.read("README.md") == "the user is writing\n"
    assert not (workshop.top / "one").exists()

    workshop.sh("commit", "-qam", "the user's")
    mine = workshop.sh("rev-parse", "main")
    assert "git merge harness/main" in workshop("status").out
    both = "grep -q writing README.md && grep -q done one && grep -q done two"
    workshop.add("Both", both, do="write two done")
    workshop.ends(0)

    assert workshop.task("task-002")["attempts"] == 0
    assert workshop.git.is_ancestor(mine, "refs/heads/main")
    workshop.all_is_well()


@pytest.mark.release
def test_what_waits_and_conflicts_with_the_users_commit_is_theirs_to_merge(workshop: Workshop) -> None:
    workshop.add("One", "grep -q done README.md", do="write README.md done")
    workshop.put("README.md", "the user is writing\n")
    workshop.ends(9)
    workshop.sh("commit", "-qam", "the user's")
    mine = workshop.sh("rev-parse", "main")

    workshop.file_task("two")
    said = workshop.ends(9)

    assert "git merge harness/main" in said.stdout
    assert workshop.sh("rev-parse", "main") == mine
    assert workshop.sh("show", "harness/main:two") == "done"


def test_work_waits_while_the_user_rebases_the_branch(workshop: Workshop) -> None:
    """`--continue` refuses where the branch has moved, and `--abort` takes away what came in between."""
    workshop.file_task("one")
    workshop.put("own", "the user's\n")
    workshop.commits("Own")
    go = workshop.at_work("-j", "1", name="two")
    workshop.sh("rebase", "-qi", "HEAD~1", env={"GIT_SEQUENCE_EDITOR": "sed -i s/^pick/edit/"})
    before = workshop.sh("rev-parse", "main")
    go.touch()

    workshop.has_ended(9)

    assert workshop.sh("rev-parse", "main") == before
    assert "a rebase of yours is under way there: end it first" in " ".join(workshop.printed.split())
    workshop.sh("rebase", "--abort")
    assert workshop.sh("show", "harness/main:two") == "half\ndone"
    workshop.ends(0)
    workshop.all_is_well()


@pytest.mark.release
def test_what_waits_goes_over_once_nothing_is_in_the_way(workshop: Workshop) -> None:
    """Neither a file of the user's nor a lock of git's, for which nobody waits; tests/verbs has the words."""
    workshop.file_task("one")
    workshop.put("one", "the user's own, untracked\n")
    lock = workshop.put(".git/index.lock", "")

    said = workshop.ends(9, **HURRIED)

    assert f"git's lock {lock} stands there" in " ".join(said.stdout.split())
    assert workshop.read("one") == "the user's own, untracked\n"
    lock.unlink()
    (workshop.top / "one").rename(workshop.top.parent / "mine")
    before = workshop.sh("rev-parse", "main")

    said = workshop.ends(0)

    after = workshop.sh("rev-parse", "main")
    gone = "What waited on the branch harness/main has gone to main: git log --oneline"
    assert f"{gone} {before}..{after}" in said.stdout, said.stdout
    workshop.all_is_well()


def test_a_users_commit_is_not_taken_for_work(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = workshop.sh("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "One")
    workshop.sh("branch", "harness/main", waits)

    def too_late(*_: object) -> None:
        workshop.sh("commit", "-q", "--allow-empty", "-m", "the user's")
        raise target_branch.MovedError

    monkeypatch.setattr(target_branch, "carry_out", too_late)

    assert pending_merges.bring_over(Context(env=workshop.env, cwd=workshop.top), "refs/heads/main") is None


@pytest.mark.release
def test_what_waits_beside_commits_is_joined_once_all_checks_pass_there(workshop: Workshop) -> None:
    """Where nobody tries the two together they stay apart: the user merges them, or another run does."""
    workshop.file_task("one")
    workshop.put("README.md", "the user is writing\n")
    workshop.ends(9)
    workshop.sh("commit", "-qam", "the user's")
    mine = workshop.sh("rev-parse", "main")

    said = workshop.ends(9)

    assert workshop.sh("rev-parse", "main") == mine
    assert "main has commits of its own git merge harness/main" in " ".join(said.stdout.split())

    said = workshop.ends(0, "--final-check", "all")

    assert "git merge" not in said.stdout
    assert "What waited on the branch harness/main has gone to main" in said.stdout
    assert f"git log --stat {mine[:12]}.." in said.stdout
    assert workshop.read("README.md") == "the user is writing\n"
    workshop.all_is_well()


@pytest.mark.release
def test_work_does_not_conflict_with_what_waits_for_user(workshop: Workshop, tmp_path: Path) -> None:
    """The attempt starts on a merge of both; by its end that merge is another one."""
    workshop.add("One", "grep -q one f", do="write f one")
    workshop.put("README.md", "the user is writing\n")
    workshop.ends(9)
    workshop.sh("commit", "-qam", "the user's, before")
    started, go = tmp_path / "started", tmp_path / "go"
    workshop.add("Two", "grep -q two f", do=f"write f two\ntouch {started}\nwait {go}")
    workshop.put("g", "the user's file\n")
    workshop.sh("add", "g")
    workshop.put("README.md", "and writes on\n")
    workshop.start(until=started)
    workshop.sh("commit", "-qm", "the user's, during")
    workshop.sh("checkout", "-q", "README.md")
    go.touch()

    workshop.has_ended(0)
    assert "conflicts" not in workshop.printed
    assert workshop.task("task-002")["attempts"] == 0
    assert workshop.read("f").split() == ["one", "two"]
    workshop.all_is_well()


# -- a checkout that we have left behind its branch


@pytest.fixture
def chat(workshop: Workshop) -> Iterator[Agent]:
    """Yield an agent that has finished two tasks in the user's checkout."""
    made = Agent("chat", workshop.top, Time(), {"HARNESS_HOME": str(workshop.home)})
    for name in ("one", "two"):
        _finish(workshop, made, name)
    yield made
    made.die()


def _finish(workshop: Workshop, chat: Agent, name: str) -> None:
    chat.ok("add", f"Make {name}", "--validate", f"grep -q done {name}")
    chat.ok("claim")
    workshop.put(name, "done\n")
    chat.ok("finish")


def _status(workshop: Workshop) -> list[str]:
    return workshop.sh("status", "--porcelain").splitlines()


def _left_behind(workshop: Workshop) -> str:
    """Let the checkout stand where its branch was one task ago; return the branch's tip."""
    tip = workshop.sh("rev-parse", "main")
    workshop.sh("reset", "-q", "--hard", "main~1")
    _moved_elsewhere(workshop, tip)
    assert _status(workshop) == ["D  two"]
    return tip


def _moved_elsewhere(workshop: Workshop, commit: str) -> None:
    """Move main as a process in another work tree does, without a look at the project's own checkout."""
    beside = workshop.top.parent / "beside"
    workshop.sh("worktree", "add", "-q", "--detach", str(beside))
    sh(beside, "update-ref", "refs/heads/main", commit)
    workshop.sh("worktree", "remove", "--force", str(beside))


@pytest.mark.usefixtures("chat")
def test_what_the_user_has_staged_there_is_not_touched(workshop: Workshop) -> None:
    _left_behind(workshop)
    workshop.put("README.md", "the user is writing\n")
    workshop.sh("add", "README.md")
    before = _status(workshop)

    target_branch.mend(workshop.context())

    assert _status(workshop) == before
    assert workshop.read("README.md") == "the user is writing\n"


@pytest.mark.usefixtures("chat")
def test_a_branch_that_somebody_else_has_moved_is_not_followed(workshop: Workshop) -> None:
    _left_behind(workshop)
    tree = workshop.sh("rev-parse", "main^{tree}")
    _moved_elsewhere(workshop, workshop.sh("commit-tree", "-p", "main", "-m", "somebody's", tree))

    target_branch.mend(workshop.context())

    assert _status(workshop) == ["D  two"]


def test_work_that_the_user_takes_back_in_the_index_stays_taken_back(workshop: Workshop, chat: Agent) -> None:
    """Also after their checkout has come after."""
    workshop.sh("restore", "--source=main~1", "--staged", "--worktree", ".")
    target_branch.mend(workshop.context())
    assert _status(workshop) == ["D  two"]

    workshop.sh("reset", "-q", "--hard")
    _left_behind(workshop)
    target_branch.mend(workshop.context())
    assert _status(workshop) == []
    _finish(workshop, chat, "three")
    workshop.sh("restore", "--source=main~2", "--staged", "--worktree", ".")
    target_branch.mend(workshop.context())
    assert _status(workshop) == ["D  three", "D  two"]

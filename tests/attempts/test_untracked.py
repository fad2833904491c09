"""What the user has and git does not is kept, put back or named; what an attempt made is not left in it."""

from __future__ import annotations

import os
import re
import shutil
import time

import pytest

from harness_lib import typed
from harness_lib.attempts import baseline, rescue_refs
from tests.conftest import for_release
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, begin
from tests.waiting import until


@pytest.mark.parametrize("how", ["changed", *for_release("deleted")])
def test_a_passing_attempt_keeps_an_untracked_file_it_took(project: Project, agent: Agent, how: str) -> None:
    project.put("mine.txt", "my notes\n")
    project.put("untouched.txt", "not mentioned\n")
    begin(agent)
    project.put("done")
    if how == "changed":
        project.put("mine.txt", "overwritten\n")
    else:
        (project.top / "mine.txt").unlink()

    reply = agent.ok("finish")

    warning = next(line for line in reply["warnings"] if "mine.txt" in line)
    assert "harness rescue show task-001/1-before" in warning
    assert "untouched.txt" not in str(reply)
    assert project.grep("WARN", "mine.txt")
    assert project.git("show", "refs/harness/rescue/task-001/1-before:mine.txt") == "my notes"
    assert "my notes" in agent.ok("rescue", "show", "task-001/1-before")["message"]
    assert project.in_commit() == ["done", "tracked.txt"]


def test_a_copy_of_a_killed_claim_goes_and_another_lists_stays(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    refs = []
    for root in (project.top, project.top / "other"):
        message, long_ago = rescue_refs.before_subject(root), {"GIT_COMMITTER_DATE": "2020-01-01T00:00Z"}
        oid = project.git("commit-tree", "HEAD^{tree}", "-m", message, env=long_ago)
        refs.append(f"refs/harness/before/{oid}")
        project.git("update-ref", refs[-1], oid)

    agent.ok("start")

    assert project.refs("refs/harness/before/") == refs[1:]


def test_what_git_cannot_take_into_the_commit_is_named(project: Project, agent: Agent) -> None:
    project.put("locked before").chmod(0)
    project.put("data of a server/own")
    (project.top / "data of a server").chmod(0)
    _next_second()
    begin(agent)
    project.put("done")
    project.git("init", "-q", "no commit")
    project.put("own/unread").chmod(0)
    project.put("locked/own")
    (project.top / "locked").chmod(0)

    (said,) = agent.ok("finish")["task"]["look_at"]

    for name in ("locked", "data of a server"):
        (project.top / name).chmod(0o755)
    # Root can read everything.
    names = ["no commit"] if os.geteuid() == 0 else ["locked", "no commit", "own/unread"]
    assert "task-001 was committed without what git cannot read: " in said
    assert sorted(re.findall("'(.*?)'", said)) == names


def _next_second() -> None:
    second = int(time.time())
    until("the next second, as claims tell no shorter times", lambda: time.time() > second + 1)


def test_what_was_ignored_before_is_named_if_the_attempt_commits_it(project: Project, agent: Agent) -> None:
    project.commit(files={".gitignore": "*.db\n"})
    project.put("mine.db")
    _next_second()
    begin(agent)
    project.commit(files={".gitignore": ""}, message="Ignore nothing")
    project.put("done")

    (said,) = agent.ok("finish")["task"]["look_at"]

    assert said.startswith("task-001 has what git ignored before it: 'mine.db' (git ")


def test_a_file_whose_place_is_taken_is_kept_and_named(project: Project, agent: Agent) -> None:
    """An attempt puts what git ignores where an untracked and two tracked files were."""
    project.commit(files={"out/deep.txt": "deep\n"})
    project.commit(files={".gitignore": "*.o\nout\n"})
    project.put("mine.txt", "my notes\n")
    begin(agent)
    (project.top / "mine.txt").unlink()
    project.put("mine.txt/x.o")
    (project.top / "tracked.txt").unlink()
    project.put("tracked.txt/x.o")
    shutil.rmtree(project.top / "out")
    project.put("out")

    warned = agent.fails(1, "finish")["warnings"]

    # Also who stands in a directory below types it as it is.
    back = f"Move that away, then type: git -C {typed.word(project.top)} checkout-index --"
    assert f"out/deep.txt could not be put back: a file stands at out. {back} out/deep.txt" in warned
    moved = "could not be put back: a directory stands at"
    assert f"tracked.txt {moved} tracked.txt. {back} tracked.txt" in warned
    assert f"mine.txt {moved} mine.txt. Move that away first" in warned
    assert "kept: harness rescue show task-001/1-before" in " ".join(warned)
    for name in ("tracked.txt", "mine.txt", "out"):
        (project.top / name).rename(project.top.parent / name)
    project.git("checkout-index", "--", "tracked.txt", "out/deep.txt")
    agent.ok("rescue", "apply", "task-001/1-before")
    assert (project.read("tracked.txt"), project.read("mine.txt")) == ("one\n", "my notes\n")
    assert project.git("status", "--porcelain") == "?? mine.txt"


def test_an_interrupted_attempt_keeps_an_untracked_file_it_took(project: Project, agent: Agent) -> None:
    project.put("mine.txt", "my notes\n")
    begin(agent)
    (project.top / "mine.txt").unlink()
    agent.die()

    said = project.agent("next").ok("start")

    assert project.task()["error_log"] == ["[SESSION_TIMEOUT] No progress detected"]
    assert "harness rescue show task-001/1-before" in " ".join(said["warnings"])
    assert project.git("show", "refs/harness/rescue/task-001/1-before:mine.txt") == "my notes"


def test_one_that_is_too_large_to_keep_is_named(
    project: Project, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (baseline.LIMIT_EACH_BYTES, baseline.LIMIT_TOTAL_BYTES) == (10 << 20, 100 << 20)
    monkeypatch.setattr(baseline, "LIMIT_EACH_BYTES", 10)
    project.put("big.bin", "x" * 11)

    agent.ok("add", "One", "--validate", "true")
    brief = agent.ok("claim")["brief"]

    assert "big.bin" in brief
    assert project.grep("WARN", "[task-001]", "big.bin")
    assert "big.bin" in agent.ok("claim")["brief"]


@pytest.mark.parametrize("how", ["edited", *for_release("new", "whole directory")])
def test_what_an_attempt_has_ignored_goes_with_it(project: Project, agent: Agent, how: str) -> None:
    project.commit(files={".gitignore": "*.log\n"})
    project.put("build.log", "ignored before\n")
    before = project.files
    begin(agent)
    if how == "new":
        project.put("sub/.gitignore", "made.txt\n")
        made = "sub/made.txt"
    else:
        made = "gen/made.txt"
        project.put(".gitignore", "*.log\n" + ("gen/\n" if how == "whole directory" else "made.txt\n"))
    agent.finishes({made: "by the attempt\n"}, code=1)

    assert project.files == before
    assert project.git("show", f"{project.refs()[0]}:{made}") == "by the attempt"


def test_what_the_user_s_own_rules_ignore_stays(project: Project, agent: Agent) -> None:
    """Rules that are untracked themselves, or that lie in what they ignore, are not the attempt's."""
    project.put(".gitignore", "secret\n")
    project.put("secret", "of mine\n")
    project.put(".venv/.gitignore", "*\n")
    project.put(".venv/bin/python", "mine\n")
    begin(agent)
    before = project.files
    agent.finishes({"new/.gitignore": "made\n", "new/made": "by the attempt\n"}, code=1)

    assert project.files == before


def test_a_check_that_passes_on_nothing_git_takes_says_so(project: Project, agent: Agent) -> None:
    project.commit(files={".gitignore": "out\n"})
    begin(agent, "test -f out")
    reply = agent.finishes({"out": "x\n"})

    assert "nothing was committed" in reply["message"]
    assert any("git ignores" in line for line in reply["warnings"])
    assert project.grep("WARN", "[task-001]", "Nothing was committed")


def test_harness_files_that_it_has_committed_leave_its_history(project: Project, agent: Agent) -> None:
    begin(agent)
    base = project.head
    project.put("one")
    project.git("add", "-f", "one", "harness-tasks.json")
    project.commit_only("Work, and the list with it")
    project.git("add", "-f", "harness-progress.txt")
    project.commit_only("Nothing but the log")
    project.put("done")
    project.git("add", "done")
    project.git("commit", "-qm", "The rest", "--author", "Somebody <s@example.invalid>")

    agent.ok("finish")

    assert project.in_commit() == ["done", "one", "tracked.txt"]
    log = project.git("log", "--format=%an %s", f"{base}..HEAD").splitlines()
    assert log == ["Somebody The rest", "Test Person Work, and the list with it"]
    assert project.git("log", "--format=%h", f"{base}..HEAD", "--", "harness-*") == ""
    assert project.task()["completed_commit"] == project.head
    assert project.git("status", "--porcelain") == ""
    assert project.file.exists()


def test_an_attempt_that_did_nothing_has_no_work_to_show(project: Project, agent: Agent) -> None:
    project.put("plan.md", "mine\n")
    begin(agent)

    reply = agent.fails(1, "finish")

    assert reply["rescue"] is None
    assert project.refs() == []
    assert "harness rescue" not in agent.ok("claim")["brief"]
    assert project.read("plan.md") == "mine\n"


def test_what_stands_where_a_work_tree_was_is_work(project: Project, agent: Agent) -> None:
    """Git still has its record of one that was deleted by hand."""
    place = project.top / "place"
    project.git("worktree", "add", "-q", str(place))
    shutil.rmtree(place)
    begin(agent, "test -f place/done")

    agent.finishes({"place/done": "x\n"})

    assert project.in_commit() == ["place/done", "tracked.txt"]


@pytest.mark.parametrize("made", ["before", "meanwhile"])
@pytest.mark.parametrize("verb", ["finish", "fail"])
def test_a_linked_work_tree_is_nobodys_work(project: Project, agent: Agent, made: str, verb: str) -> None:
    """`claude --worktree`, and its subagents with a work tree, make theirs in `.claude/worktrees`."""
    linked = project.top / ".claude/worktrees/one"
    agent.ok("add", "One", "--validate", "test -f done")
    if made == "before":
        project.git("worktree", "add", "-q", "-b", "one", str(linked))
    brief = agent.ok("claim")["message"]
    if made == "meanwhile":
        project.git("worktree", "add", "-q", "-b", "one", str(linked))
    put(linked / "precious", "x\n")
    project.put("done", "x\n")

    said = agent.ok("finish") if verb == "finish" else agent.ok("fail", "task-001", "--message", "no")

    assert "worktrees" not in brief
    assert not [line for line in said["warnings"] if "repository of its own" in line]
    assert "worktrees" not in project.git("ls-tree", "-r", "--name-only", "HEAD")
    assert (linked / "precious").read_text() == "x\n"
    assert not project.git("-C", str(linked), "status", "--short", "--untracked-files=no")
    rescued = project.git("for-each-ref", "--format=%(refname)", "refs/harness/rescue").split()
    assert not any("worktrees" in project.git("ls-tree", "-r", "--name-only", ref) for ref in rescued)

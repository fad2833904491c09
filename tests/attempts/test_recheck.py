"""A re-check runs the check of a completed task on a clean checkout: what is red there is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.attempts import recheck
from harness_lib.core.context import Context
from tests.attempts.rechecking import context, done, found
from tests.verbs.project import Agent, Project, begin


@pytest.fixture
def ctx(project: Project, tmp_path: Path) -> Context:
    return context(project, tmp_path / "home")


def test_what_a_later_commit_broke_alone_is_red(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "echo looked at a; test -f a", "a")
    done(project, agent, "test -f b", "b")
    project.git("rm", "-q", "a")
    commit = project.commit("by hand")

    found(ctx)

    broken, good = (project.task(name)["recheck"] for name in ("task-001", "task-002"))
    assert (broken["passed"], broken["commit"]) == (False, commit)
    assert "exit code 1" in broken["tail"]
    assert "looked at a" in broken["tail"]
    assert (good["passed"], good["commit"], good["tail"]) == (True, commit, "")
    assert project.grep("WARN [task-001]", f"its check fails at {commit[:12]}")
    assert not (project.top.parent / "clean").exists()


def test_one_check_runs_once_on_one_content(project: Project, agent: Agent, ctx: Context) -> None:
    runs = project.top.parent / "runs"
    for name in ("a", "b", "c"):
        done(project, agent, f"echo x >> {runs}", name)
    runs.unlink()

    assert len(found(ctx)) == 3
    assert runs.read_text() == "x\n"

    # Another task with this check, and another commit with the same content.
    done(project, agent, f"echo x >> {runs}")
    runs.unlink()
    project.commit("nothing new")
    assert [each.task.id for each in found(ctx)] == ["task-004"]
    assert not runs.exists()


def test_what_a_check_leaves_is_gone_before_the_next(project: Project, agent: Agent, ctx: Context) -> None:
    project.put("harness-init.sh", "echo x > made-by-init\n")
    agent.trusts()
    done(project, agent, "echo two > tracked.txt; rm -f b; test ! -e new; touch new", "a")
    (project.top / "new").unlink()
    done(project, agent, "grep one tracked.txt && test -f b && test ! -e new && test -f made-by-init", "b")

    assert [each.recheck.passed for each in found(ctx)] == [True, True]


def built(project: Project, agent: Agent) -> None:
    """Let an agent finish a task whose check needs what the agent has built and git ignores."""
    project.commit("Ignore what is built", files={".gitignore": "build/\n__pycache__/\n"})
    done(project, agent, "test -f build/lib.a && test -f a", "a", "build/lib.a", "__pycache__/a.pyc")


def test_what_passes_only_in_place_is_named_and_not_red(project: Project, agent: Agent, ctx: Context) -> None:
    built(project, agent)

    found(ctx)

    recorded = project.task()["recheck"]
    assert (recorded["passed"], recorded["excuse"]) == (False, "not_reproducible")
    assert recorded["missing"] == ["build/"]
    said = agent.ok("status")["message"]
    assert "not reproducible: task-001: " in said
    assert "only there are: build/. Let harness-init.sh make what is missing" in said
    assert "100 %" in said
    agent.ok("check")
    assert agent.fails(9, "start")["stop"] == {"reason": "done"}
    assert not project.enable_flag

    # Where nothing is in place any more, it is known that it has never passed on a clean checkout.
    done(project, agent, "true", "b")
    again = next(each for each in found(ctx, in_place=False) if each.task.id == "task-001")
    assert (again.recheck.commit, again.recheck.missing) == (project.head, ("build/",))
    assert again.recheck.excuse == "not_reproducible"


def test_with_either_way_out_the_check_passes(project: Project, agent: Agent, ctx: Context) -> None:
    def passes() -> bool:
        (only,) = found(ctx)
        return only.recheck.passed

    built(project, agent)
    project.put(".worktreeinclude", "build/\n")
    assert passes()
    (project.top / ".worktreeinclude").unlink()
    project.commit("by hand", files={"tracked.txt": "other content\n"})
    assert not passes()
    project.put("harness-init.sh", "mkdir -p build && touch build/lib.a || true\n")
    agent.trusts()
    assert passes()

    project.git("rm", "-q", "a")
    commit = project.commit("break it")
    # The script is in the repository now, as one that a clone brings.
    agent.trusts()

    assert not passes()
    recorded = project.task()["recheck"]
    assert ("excuse" in recorded, recorded["commit"]) == (False, commit)


def test_what_fails_once_and_passes_then_is_flaky(project: Project, agent: Agent, ctx: Context) -> None:
    runs = project.top.parent / "runs"
    check = f"echo x >> {runs}; test -f a && test $(wc -l < {runs}) -ne 2"
    done(project, agent, check, "a")
    project.commit("nothing new")

    (each,) = found(ctx)

    assert (each.recheck.passed, each.recheck.excuse) == (True, None)
    assert len(runs.read_text().splitlines()) == 3
    line = "task-001 is flaky: its check failed and passed on the same content"
    assert project.task()["look_at"] == [line]
    status = agent("status").out
    assert f"look at: {line}" in status
    assert "red" not in status
    assert "not reproducible" not in status


def test_what_git_keeps_otherwise_is_red(project: Project, agent: Agent, ctx: Context) -> None:
    project.git("config", "filter.odd.clean", "sed s/good/evil/")
    begin(agent, "grep good a && test -f build/lib.a")
    for name, text in ((".gitignore", "build/\n"), (".gitattributes", "a filter=odd\n"), ("a", "good\n")):
        project.put(name, text)
    project.put("build/lib.a", "x\n")
    agent.ok("finish")
    assert project.git("show", "HEAD:a") == "evil"

    (first,) = found(ctx)
    (project.top / "a").unlink()
    project.git("checkout", "a")
    (later,) = found(ctx)

    words = "Git has committed other content than the check passes on in place: a. The check failed with exit"
    assert (first.recheck.excuse, first.gist[: len(words)]) == (None, words)
    assert later.recheck.excuse is None, "whatever has become of what stood in place"


def test_what_fails_is_recorded_before_it_runs_again(project: Project, agent: Agent, ctx: Context) -> None:
    """The shell of an agent may end the command then."""
    seen = project.top.parent / "seen"
    done(project, agent, f"cp {project.file} {seen}; test -f a", "a")
    project.git("rm", "-q", "a")
    project.commit("by hand")
    project.put("a", "in the work tree")

    found(ctx)

    (task,) = json.loads(seen.read_bytes())["tasks"]
    assert task["recheck"]["passed"] is False


def test_a_change_in_the_work_tree_proves_nothing(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "grep -q two tracked.txt || test -f a", "a")
    project.git("rm", "-q", "a")
    project.commit("by hand")
    project.put("tracked.txt", "two\n")

    assert found(ctx)[0].recheck.excuse is None


def test_what_was_completed_on_another_branch_is_not_on_this_one(project: Project, agent: Agent) -> None:
    """It says how to bring the work over, and nothing that builds on it begins without it."""
    begin(agent, "grep -q work f")
    project.git("checkout", "-q", "-b", "feature")
    said = agent.finishes({"f": "work\n"})

    (sentence,) = said["warnings"]
    assert said["message"].startswith("task-001 is completed on this branch only (commit ")
    assert sentence.endswith(
        "so main does not have it. Bring it over: git checkout main && git merge feature"
    )
    assert "another branch" not in agent("status").out
    project.git("checkout", "-q", "main")
    assert "1 of 1 completed, 1 of them on another branch only" in agent("status").out
    assert "[completed on another branch] task-001: One" in agent("status").out
    agent.ok("add", "Two", "--validate", "test -f f", "--depends-on", "task-001")
    assert "builds on task-001" in agent.fails(8, "claim")["error"]["message"]
    project.git("merge", "-q", "feature")
    assert "another branch" not in agent("status").out.splitlines()[0]
    agent.ok("claim")

    project.git("checkout", "-q", "-b", "other")
    warnings = agent.ok("fail", "task-002", "--message", "no")["warnings"]
    assert "HEAD was on other and is on main again, where task-002 was claimed; " in warnings[0]
    assert "git checkout other" in warnings[0]


def test_what_was_completed_on_no_branch_says_what_keeps_it(project: Project, agent: Agent) -> None:
    """Work trees of Codex have a detached HEAD: once one is removed, git deletes what only it had."""
    project.git("checkout", "-q", "--detach")
    begin(agent, "grep -q work f")
    said = agent.finishes({"f": "work\n"})

    commit = project.task()["completed_commit"][:12]
    (sentence,) = said["warnings"]
    assert said["message"].startswith(f"task-001 is completed on no branch (commit {commit}")
    assert sentence.endswith(f"git deletes its commit some day. Keep it: git branch task-001 {commit}")
    assert "another branch" not in agent("status").out
    project.git("checkout", "-q", "main")
    assert "[completed on another branch] task-001: One" in agent("status").out
    assert f"git branch task-001 {commit}" in agent("status").out

    project.git("branch", "task-001", commit)
    project.git("checkout", "-q", "--detach", "task-001")
    begin(agent, "grep -q work f")
    said = agent.ok("finish", "--already-done")
    assert "no branch" not in str(said), "a branch has it"


def test_work_that_was_claimed_on_no_branch_may_get_one(project: Project, agent: Agent) -> None:
    project.git("checkout", "-q", "--detach")
    begin(agent, "grep -q work f")
    project.git("checkout", "-q", "-b", "feature")
    said = agent.finishes({"f": "work\n"})

    assert said["message"].startswith("task-001 is completed (commit ")
    assert said["warnings"] == []


def test_a_check_that_is_ended_is_not_recorded(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "test -f a || sleep 60", "a")
    project.git("rm", "-q", "a")
    commit = project.commit("by hand")

    with recheck.clean_checkout(ctx, project.top.parent / "clean", commit) as clean:
        tasks = recheck.due(ctx, commit)
        assert list(recheck.run(clean, commit, tasks, during=lambda: False)) == []
        assert list(recheck.run(clean, commit, tasks, goes_on=lambda: False)) == []
    assert "recheck" not in project.task()


def test_a_new_start_forgets_what_was_found(project: Project, agent: Agent, ctx: Context) -> None:
    done(project, agent, "test -f a", "a")
    found(ctx)
    assert project.task()["recheck"]["passed"]
    project.put("later")
    commit = project.commit("Later")
    tasks = recheck.due(ctx, commit)
    assert [task.id for task in tasks] == ["task-001"]
    agent.ok("retry", "task-001")
    assert "recheck" not in project.task()

    with recheck.clean_checkout(ctx, project.top.parent / "clean", commit) as clean:
        assert list(recheck.run(clean, commit, tasks)) == []

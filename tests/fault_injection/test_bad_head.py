"""HEAD moved or orphaned, or another branch: refused with the way on, or worked with, and nothing lost."""

from __future__ import annotations

from tests.verbs.project import Agent, Project, begin


def test_head_moved_while_the_check_ran_is_refused_and_kept(project: Project, agent: Agent) -> None:
    """Their commit must not be undone by a tree that was captured before it."""
    begin(agent, "echo theirs > theirs.txt; git add theirs.txt; git commit -qm theirs; test -f done")
    error = agent.finishes({"done": "x\n"}, code=8)["error"]

    assert "HEAD is at" in error["message"]
    assert project.git("show", "HEAD:theirs.txt") == "theirs"
    assert project.read("done") == "x\n"
    task = project.task()
    assert (task["status"], task["attempts"], task.get("intent")) == ("in_progress", 0, None)
    project.edit_task(validation={"command": "true"}, gate=None, worktree=None)
    agent.ok("finish")
    assert project.in_commit() == ["done", "theirs.txt", "tracked.txt"]


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

"""Work of an attempt cut off elsewhere: rescued, put back later, and no files of the user with it."""

from __future__ import annotations

from pathlib import Path

from tests.attempts.interrupting import NEVER
from tests.system.git.gitrepo import put
from tests.verbs.conftest import Make
from tests.verbs.project import Project, begin


def elsewhere(make_project: Make) -> tuple[Project, Path]:
    """Return a project with a dead worker's half-done work in a work tree of its own."""
    project = make_project(mode="concurrent")
    project.git("worktree", "add", "-q", "-b", "side", "../side")
    place = project.top.parent / "side"
    put(place / "private.txt", "mine\n")
    worker = project.agent("worker", place)
    begin(worker, NEVER)
    put(place / "half.txt", "half\n")
    put(place / "tracked.txt", "two\n")
    worker.die()
    return project, place


def test_work_in_another_work_tree_is_rescued_and_put_back_into_the_next_attempt(make_project: Make) -> None:
    """What was untracked before is the user's, and goes nowhere with the work."""
    project, place = elsewhere(make_project)
    other = project.agent("other")

    other.ok("start")

    task = project.task()
    assert (task["status"], task["attempts"], task["interruptions"]) == ("pending", 0, 1)
    assert not (place / "half.txt").exists()
    assert project.read("tracked.txt") == "one\n"
    reply = other.ok("claim")
    assert (project.read("half.txt"), project.read("tracked.txt")) == ("half\n", "two\n")
    assert "stands in this work tree" in reply["message"]
    assert (place / "private.txt").read_text() == "mine\n"
    assert not (project.top / "private.txt").exists()
    project.put("done")
    other.ok("finish")
    assert {"half.txt", "done"} <= set(project.in_commit())


def test_work_that_was_not_yet_put_back_when_the_next_one_died_is_put_back_later(make_project: Make) -> None:
    project, _ = elsewhere(make_project)
    other = project.agent("other")
    other.ok("start")
    other.ok("claim")
    (project.top / "half.txt").unlink()
    project.git("checkout", "-q", "tracked.txt")
    other.die()

    third = project.agent("third")
    third.ok("start")

    assert project.task()["attempts"] == 0
    assert (project.read("half.txt"), project.read("tracked.txt")) == ("half\n", "two\n")


def test_on_another_branch_work_goes_with_the_task_and_not_into_that_branch(project: Project) -> None:
    agent = project.agent()
    begin(agent, NEVER)
    project.put("half.txt", "half\n")
    agent.die()
    project.git("checkout", "-q", "-b", "hotfix")

    other = project.agent("other")
    other.ok("start")

    task = project.task()
    assert (task["status"], task["attempts"], task["interruptions"]) == ("pending", 0, 1)
    assert ".." not in task["handback"]["reason"]
    other.ok("claim")
    assert project.read("half.txt") == "half\n"

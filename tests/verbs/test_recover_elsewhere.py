"""Recovery where the place of an attempt is gone, renamed, or in another clone: nobody else pays for it."""

from __future__ import annotations

from pathlib import Path

from tests.verbs.conftest import Make
from tests.verbs.cut_off import interrupted
from tests.verbs.project import Project

# -- where the work tree is not what it was


def test_a_worktree_that_is_gone_does_not_cost_somebody_elses_changes(make_project: Make) -> None:
    """The dead worker's linked worktree was removed: what stands in ours is not its attempt."""
    project = make_project(mode="concurrent")
    project.git("worktree", "add", "-q", "-b", "side", "../side")
    place = project.top.parent / "side"
    worker = project.agent("worker", place)
    worker.ok("add", "One", "--validate", "false")
    worker.ok("claim")
    worker.die()
    project.git("worktree", "remove", "--force", "../side")
    project.put("later.txt")
    head = project.commit("A commit after the claim")
    project.put("tracked.txt", "my own edit\n")
    project.put("mine.txt", "mine\n")
    before = project.files

    reply = project.agent("other").ok("start")

    assert "not in this repository any more" in reply["recovered"][0]
    assert project.files == before
    assert project.head == head
    assert (project.task()["status"], project.task()["attempts"]) == ("failed", 1)


def test_a_task_of_another_clone_is_not_rolled_back_in_this_one(make_project: Make) -> None:
    """HARNESS_STATE_ROOT may serve several clones; each has a work tree and a history of its own."""
    project = make_project(mode="concurrent")
    project.git("clone", "-q", ".", "../clone")
    clone = Project(project.top.parent / "clone", project.clock)
    clone.git("config", "user.email", "c@example.invalid")
    worker = project.agent("worker", clone.top, HARNESS_STATE_ROOT=str(project.top))
    worker.ok("add", "One", "--validate", "false")
    clone.put("theirs.txt", "t\n")
    clone.commit("their base")
    worker.ok("claim")
    clone.put("work.txt", "work\n")
    worker.die()
    project.put("tracked.txt", "my own edit\n")
    before, in_clone = project.files, clone.files

    project.agent("other").ok("start")

    assert project.files == before
    assert clone.files == in_clone
    assert project.task()["attempts"] == 1


def test_a_worker_of_a_clone_recovers_its_own_there(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    project.git("clone", "-q", ".", "../clone")
    clone = Project(project.top.parent / "clone", project.clock)
    worker = project.agent("worker", clone.top, HARNESS_STATE_ROOT=str(project.top))
    worker.ok("add", "One", "--validate", "false")
    project.agent("person", clone.top, HARNESS_STATE_ROOT=str(project.top)).ok(
        "trust", "--yes", HARNESS_TRUST="1"
    )
    worker.ok("claim")
    clone.put("work.txt", "work\n")
    worker.die()
    worker.wake()

    worker.ok("start")

    assert (project.task()["claimed_by"], project.task()["attempts"]) == ("worker", 0)
    assert clone.read("work.txt") == "work\n"


def test_a_project_that_was_renamed_meanwhile_is_still_recovered(make_project: Make, tmp_path: Path) -> None:
    project, agent = interrupted(make_project, "exclusive", "false")
    project.put("work.txt", "work\n")
    agent.die()
    project.top.rename(tmp_path / "renamed")
    moved = Project(tmp_path / "renamed", project.clock)
    other = project.agent("other", moved.top)
    other.ok("trust", "--yes", HARNESS_TRUST="1")

    other.ok("start")

    assert (moved.task()["status"], moved.task()["worktree"]) == ("in_progress", str(moved.top))
    assert moved.read("work.txt") == "work\n"
    assert moved.read("tracked.txt") == "one\n"
    moved.close()

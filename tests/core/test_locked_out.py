"""Nobody is locked out of their own list: by a killed `stop`, a list put back or made anew, or a clean."""

from __future__ import annotations

import shutil

import pytest

from harness_lib.system import mkdir_lock
from tests.conftest import for_release
from tests.verbs import project as projects
from tests.verbs.project import Agent, Project, begin


@pytest.fixture(autouse=True)
def _impatient(project: Project) -> None:
    """Let nobody wait half a minute for a lock: the clock hurries from the start."""
    project.clock.hurry_after = project.top


@pytest.mark.parametrize(
    ("who", "verb"),
    [("other", "start"), ("agent", "claim"), *for_release(("agent", "start"), ("other", "recover"))],
)
def test_a_stop_killed_half_way_locks_nobody_out(project: Project, agent: Agent, who: str, verb: str) -> None:
    """The list has no session any more, and the lock directory still names the living agent."""
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")
    project.edit(sessions=[])
    lock = mkdir_lock.holder_of(mkdir_lock.path_for(project.top))
    assert lock is not None
    assert lock.pid == agent.process.pid

    next_one = agent if who == "agent" else project.agent("other")

    assert next_one(verb).code == 0


@pytest.mark.parametrize("names", [["harness-tasks.json"], ["harness-tasks.json", "harness-progress.txt"]])
def test_a_tracked_list_that_git_puts_back_locks_nobody_out(
    project: Project, one: Agent, names: list[str]
) -> None:
    """Nor is a line of the log lost that git puts back with it, as a rollback of the legacy protocol does."""
    project.git("add", "-f", "harness-tasks.json", "harness-progress.txt")
    project.commit_only("Share the list")
    one.ok("claim")
    before = project.log
    project.git("checkout", "-q", *names)
    there = (project.top / "harness-progress.txt").stat().st_ino
    assert "no longer in progress: task-001;" in one.fails(2, "finish")["error"]["message"]

    assert project.agent("other").ok("start")["session"] == 1
    assert project.log[: len(before)] == before
    # Another program may be writing into a log that lacks nothing.
    assert names[1:] or (project.top / "harness-progress.txt").stat().st_ino == there


def test_a_project_that_was_removed_and_made_again_locks_nobody_out(project: Project, one: Agent) -> None:
    one.ok("start")
    shutil.rmtree(project.top)
    project.clock.hurry_after = project.top.parent
    again = projects.make(project.top, bare=True)
    other = again.agent("other")
    other.clock = project.clock

    other.ok("init")
    other.ok("add", "One", "--validate", "true")

    assert other.ok("start")["session"] == 1
    shutil.rmtree(mkdir_lock.path_for(again.top))
    again.close()


# -- git clean takes everything in the root; tests/state says which copy comes back


def test_what_git_clean_took_comes_back_from_the_git_directory(project: Project, agent: Agent) -> None:
    begin(agent)
    agent.ok("add", "Two", "--validate", "true")
    before = project.log
    project.git("clean", "-fdxq")
    assert not project.file.exists()
    below = project.put("sub/dir/x.txt").parent

    shown = project.agent("person", below)("status")
    assert shown.code == 0, shown.text
    assert "task-002" in shown.out
    reply = agent.ok("start")

    assert [task["id"] for task in project.state["tasks"]] == ["task-001", "task-002"]
    assert reply["task"]["id"] == "task-001"
    warnings = " ".join(reply["warnings"])
    assert "restored" in warnings
    assert "harness-progress.txt was put back, too" in warnings
    assert project.enable_flag
    assert project.log[: len(before)] == before
    agent.ok("checkpoint", "task-001", "1/2", "after it came back")
    project.git("clean", "-fdxq")
    agent.ok("start")
    assert project.grep("CHECKPOINT", "after it came back")
    project.git("clean", "-fdxq")
    agent.ok("checkpoint", "task-001", "2/2", "hooks hold whatever brings the list back")
    assert project.enable_flag


def test_a_log_that_git_clean_took_comes_back_beside_a_list(project: Project, agent: Agent) -> None:
    begin(agent)
    project.git("add", "--force", "harness-tasks.json")
    project.commit("Share the list")
    before = project.log
    project.git("clean", "-fdxq")

    for number in (1, 2):
        warned = agent.ok("checkpoint", "task-001", f"{number}/2", "after it was taken")["warnings"]
        assert ("harness-progress.txt was gone and has been put back." in warned) is (number == 1)

    assert project.log[: len(before)] == before
    assert len(project.grep("after it was taken")) == 2


def test_a_log_that_the_user_has_replaced_is_the_one_that_comes_back(project: Project, agent: Agent) -> None:
    begin(agent)
    (project.top / "harness-progress.txt").unlink()
    project.put("harness-progress.txt", "cut short by the user\n")
    agent.ok("checkpoint", "task-001", "1/2", "later")
    project.git("clean", "-fdxq")

    agent.ok("start")

    assert project.log[0] == "cut short by the user"
    assert project.grep("CHECKPOINT", "later")


def test_a_list_in_a_linked_work_tree_comes_back_too(project: Project) -> None:
    project.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Project(project.top.parent / "side", project.clock)
    worker = side.agent("worker", HARNESS_STATE_ROOT=str(side.top))
    worker.ok("init")
    worker.ok("add", "Aside", "--validate", "true")
    side.git("clean", "-fdxq")

    assert "Aside" in worker("status").out
    side.close()

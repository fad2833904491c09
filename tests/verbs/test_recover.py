"""The protocol's decision matrix, every row, through the command line, in both modes."""

from __future__ import annotations

import shutil

import pytest

from tests.verbs.conftest import Make
from tests.verbs.cut_off import interrupted
from tests.verbs.project import Agent, Project

MODES = ("exclusive", "concurrent")


def recover(project: Project, agent: Agent, mode: str) -> str:
    """Let the agent die and another one start; in concurrent mode the lease has to end first."""
    agent.die()
    if mode == "concurrent":
        project.clock.pass_(hours=1)
    reply = project.agent("next")("start", "--json").json
    lines = reply.get("recovered", [])
    assert len(lines) == 1, reply
    assert len(project.grep("RECOVERY [task-001] action=", "reason=")) == 1
    return str(lines[0])


@pytest.mark.parametrize("mode", MODES)
def test_no_change_no_commit_no_checkpoint_fails(make_project: Make, mode: str) -> None:
    project, agent = interrupted(make_project, mode)

    assert "No progress detected" in recover(project, agent, mode)

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert task["error_log"] == ["[SESSION_TIMEOUT] No progress detected"]


@pytest.mark.parametrize("mode", MODES)
def test_checkpoints_that_the_files_reflect_are_resumed(make_project: Make, mode: str) -> None:
    """The work was ignored by git or committed elsewhere: no change to see, but the content is the same."""
    project, agent = interrupted(make_project, mode)
    agent.ok("checkpoint", "task-001", "1/2", "looked around, wrote nothing")

    assert "resume from last step" in recover(project, agent, mode)

    task = project.task()
    assert (task["status"], task["attempts"], task["claimed_by"]) == ("in_progress", 0, "next")
    assert len(task["checkpoints"]) == 1


@pytest.mark.parametrize("mode", MODES)
def test_checkpoints_whose_work_is_gone_fail(make_project: Make, mode: str) -> None:
    project, agent = interrupted(make_project, mode)
    project.put("tracked.txt", "half\n")
    agent.ok("checkpoint", "task-001", "1/2", "half")
    project.git("checkout", "tracked.txt")

    assert "work was lost" in recover(project, agent, mode)

    assert project.task()["status"] == "failed"
    assert project.task()["error_log"][0].startswith("[SESSION_TIMEOUT]")


@pytest.mark.parametrize("mode", MODES)
def test_a_checkpoint_without_a_tree_is_no_evidence(make_project: Make, mode: str) -> None:
    project, agent = interrupted(make_project, mode)
    project.edit_task(checkpoints=[{"step": 1, "total": 2, "description": "believe me"}])

    assert "mark failed" in recover(project, agent, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("passes", [True, False], ids=["passes", "fails"])
@pytest.mark.parametrize("left", ["commits", "changes", "both"])
def test_what_is_there_is_judged_by_the_check(make_project: Make, mode: str, left: str, passes: bool) -> None:
    project, agent = interrupted(make_project, mode, "test -f done" if passes else "false")
    base = project.head
    if left != "changes":
        project.put("committed.txt", "c\n")
        project.commit("[task-001] part one")
    project.put("done")
    if left == "commits":
        project.commit("[task-001] part two")
    else:
        project.put("tracked.txt", "two\n")

    line = recover(project, agent, mode)

    task = project.task()
    if passes:
        assert "mark completed" in line
        assert task["status"] == "completed"
        assert project.git("show", "HEAD:done") == "x"
        assert project.git("status", "--porcelain") == ""
        return
    assert ": resume (" in line
    assert (task["status"], task["attempts"], task["interruptions"]) == ("in_progress", 0, 1)
    assert (project.head == base) == (left == "changes")
    assert project.read("done") == "x\n"
    assert ("committed.txt" in project.files) == (left != "changes")


def test_only_commits_that_name_the_task_count_as_its_own(make_project: Make) -> None:
    project, agent = interrupted(make_project, "exclusive")
    project.put("x")
    project.commit("about [task-0011] and task-001x")

    assert "No progress" in recover(project, agent, "exclusive")


@pytest.mark.parametrize("mode", MODES)
def test_untracked_files_from_before_are_no_progress(make_project: Make, mode: str) -> None:
    project = make_project(mode=mode)
    project.put("mine.txt", "mine\n")
    agent = project.agent()
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")

    assert "No progress" in recover(project, agent, mode)

    assert project.read("mine.txt") == "mine\n"


def test_the_same_worker_recovers_its_own_without_waiting_for_the_lease(make_project: Make) -> None:
    _, agent = interrupted(make_project, "concurrent")
    agent.die()
    agent.wake()

    assert "No progress" in agent.ok("start")["recovered"][0]


def test_nobody_waits_for_the_lease_of_a_worker_that_is_proven_dead(make_project: Make) -> None:
    project, agent = interrupted(make_project, "concurrent")
    project.put("work.txt", "work\n")
    agent.die()
    project.edit_task(lease_expires_at="2999-01-01T00:00:00Z")

    project.agent("other").ok("start")

    assert (project.task()["claimed_by"], project.task()["attempts"]) == ("other", 0)
    assert project.read("work.txt") == "work\n"


def test_recovery_that_needs_a_check_nobody_trusts_stops_and_touches_nothing(make_project: Make) -> None:
    project, agent = interrupted(make_project, "exclusive")
    project.put("work.txt", "work\n")
    shutil.rmtree(project.top / ".git" / "harness")
    agent.die()
    other = project.agent("other")

    assert "harness trust" in other.fails(8, "start")["error"]["hint"]

    assert project.read("work.txt") == "work\n"
    assert project.task()["status"] == "in_progress"
    assert project.task()["attempts"] == 0
    other.ok("trust", "--yes", HARNESS_TRUST="1")
    assert other("start").code == 0
    assert (project.task()["status"], project.task()["claimed_by"]) == ("in_progress", "other")
    assert project.read("work.txt") == "work\n"


def test_recovery_without_a_check_is_config_and_touches_nothing(make_project: Make) -> None:
    project = make_project()
    agent = project.agent()
    agent.ok("add", "One")
    agent.ok("claim")
    project.put("work.txt", "work\n")
    agent.die()

    project.agent("next").fails(3, "start")

    assert project.read("work.txt") == "work\n"
    assert project.state["sessions"][0]["halt"].startswith("CONFIG")


def test_a_base_that_is_gone_rolls_nothing_back_and_uses_up_the_attempts(make_project: Make) -> None:
    project, agent = interrupted(make_project, "exclusive", "false")
    project.put("work.txt", "work\n")
    project.edit_task(started_at_commit="0" * 40)
    before = project.files

    reply = agent.fails(1, "finish")

    assert project.files == before
    task = project.task()
    assert task["attempts"] == task["max_attempts"] == 3
    assert "gone" in " ".join(reply["warnings"])
    assert project.grep("ROLLBACK", "not possible", "is gone")
    assert project.git("show", f"{reply['rescue']}:work.txt") == "work"


def test_a_base_that_is_gone_in_recovery_too(make_project: Make) -> None:
    project, agent = interrupted(make_project, "exclusive", "false")
    project.put("work.txt", "work\n")
    project.edit_task(started_at_commit="0" * 40)
    before = project.files

    recover(project, agent, "exclusive")

    assert project.files == before
    assert project.task()["attempts"] == 3


def test_recover_is_a_verb_too_and_says_when_there_is_nothing(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "true")
    agent.ok("start")

    assert "Nothing was interrupted" in agent.ok("recover")["message"]
    agent.ok("claim")
    assert agent.ok("recover")["recovered"] == []
    assert project.task()["status"] == "in_progress"

"""Done is proven: only what our own write recorded with its check counts as completed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin, own_work_tree

SAID = "an external edit"


def forge(project: Project, *task_ids: str, **also: object) -> None:
    """Say of these tasks that they are completed, as a program in an agent's shell does."""
    for task_id in task_ids:
        project.edit_task(task_id, status="completed", **also)


def test_a_forged_task_whose_check_fails_at_start_is_pending_again(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "touch ran; test -f done")
    project.put("mine.txt", "not the task's\n")
    forge(project, "task-001", completed_at="2025-07-01T10:00:00Z")

    reply = agent.ok("start")

    assert (project.top / "ran").exists()
    assert project.task()["status"] == "pending"
    assert reply["task"]["id"] == "task-001"
    assert project.task()["attempts"] == 0
    assert project.read("mine.txt") == "not the task's\n"
    assert project.grep("WARN [task-001]", SAID, "; The check failed with exit code 1; pending again")


def test_a_forged_task_whose_check_passes_is_completed_with_a_warning(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f tracked.txt")
    forge(project, "task-001")

    said = agent.fails(9, "claim")

    assert said["stop"] == {"reason": "done"}
    assert project.task()["status"] == "completed"
    assert project.task()["completed_commit"] == project.head
    assert project.grep("WARN [task-001]", SAID, "test -f tracked.txt", "passes")
    assert said["next"] == "harness validate --all --committed"
    assert agent.ok("validate", "--all", "--committed")["stop"] == {"reason": "done"}
    assert not project.enable_flag
    assert project.state["sessions"] == []
    agent.ok("check")


def test_status_and_check_name_a_forged_task(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    forge(project, "task-001")

    status = agent.ok("status")
    assert "0 of 1 completed" in status["message"]
    assert f"[unproven] task-001: One (0/3)\n    {SAID}" in status["message"]
    assert status["unproven"] == ["task-001"]
    assert status["next"] == "harness start"
    wrong = agent.fails(1, "check")
    assert [each["path"] for each in wrong["problems"]] == ["tasks[0].status"]
    assert SAID in agent.ok("show", "task-001")["message"]
    assert any(SAID in each["what"] for each in agent.ok("doctor")["found"])
    said = agent.ok("claim", "--dry-run")
    assert said["message"].startswith("would first run the checks of task-001: ")
    assert (SAID in said["message"], said["next"]) == (True, "harness claim")


def test_a_check_that_was_changed_proves_nothing_until_changed_back(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("finish")
    good = project.task()["validation"]
    project.edit_task(validation={"command": "test -f more"})
    agent.ok("add", "Two", "--validate", "true")
    assert agent.fails(1, "check")["problems"]
    project.edit_task(validation=good)
    agent.ok("check")

    project.edit_task(validation={"command": "test -f more"})
    agent.ok("start")
    assert project.task()["status"] == "pending"


def test_status_and_check_written_together_are_noticed(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("add", "Two")
    forge(project, "task-001", validation={"command": "true"}, completed_commit=project.head)
    forge(project, "task-002")

    assert len(agent.fails(1, "check")["problems"]) == 2
    agent("start")

    assert project.grep("WARN [task-001]", SAID, "true")
    assert project.task("task-002")["status"] == "pending"


def test_forging_another_task_does_not_pass_through_an_honest_finish(project: Project, agent: Agent) -> None:
    begin(agent, "true")
    agent.ok("add", "Two", "--validate", "test -f two")
    forge(project, "task-002")

    finished = agent.ok("finish")

    assert finished["stop"] is None
    assert "task-002" in str(finished["warnings"])
    assert agent.fails(1, "check")["problems"]
    assert project.enable_flag
    assert agent.ok("claim")["task"]["id"] == "task-002"


def test_evidence_survives_a_rewrite_and_is_of_its_task_alone(project: Project, agent: Agent) -> None:
    """Also where our directory is lost."""
    begin(agent, "true")
    agent.ok("finish")
    project.file.write_text(json.dumps(project.state, indent=4))
    project.git("clean", "-fdxq", "-e", "harness-tasks.json")

    agent.ok("check")
    assert agent.fails(9, "start")["stop"] == {"reason": "done"}

    done = project.task("task-001")
    project.edit(tasks=[done, {**done, "id": "task-002"}])
    assert [each["path"] for each in agent.fails(1, "check")["problems"]] == ["tasks[1].status"]


def test_nothing_untrusted_is_run_to_prove_a_task(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "touch ran")
    (project.top / ".git/harness/trust.json").unlink()
    forge(project, "task-001")

    agent.fails(8, "start")

    assert not (project.top / "ran").exists()
    assert project.task()["status"] == "completed"
    assert agent.fails(1, "check")["problems"]


def test_the_word_of_somebody_else_does_not_end_an_attempt(project: Project, agent: Agent) -> None:
    begin(agent, "test -f done")
    work = project.put("half", "a\n")
    forge(project, "task-001", completed_at="2025-07-01T10:00:00Z")

    assert f"[in_progress] task-001: One (0/3)\n    {SAID}" in agent.ok("status")["message"]
    assert agent.fails(1, "check")["problems"]
    assert agent.ok("start")["next"] == "harness finish"
    agent.finishes({"done": "x\n"})

    assert work.exists()
    assert project.task()["status"] == "completed"
    assert project.in_commit() == ["done", "half", "tracked.txt"]
    agent.ok("check")


def test_a_worker_keeps_the_claim_that_another_one_said_was_done(make_project: Make, tmp_path: Path) -> None:
    shared = make_project(mode="concurrent")
    shared.git("worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    first, second = shared.agent("a"), shared.agent("b", tmp_path / "other")
    for worker in (first, second):
        begin(worker, "true")
    forge(shared, "task-001", "task-002")

    first.ok("checkpoint", "task-001", "1/2", "half")
    second.ok("finish")
    first.ok("finish")

    assert [task["status"] for task in shared.state["tasks"]] == ["completed", "completed"]
    first.ok("check")


def test_a_forged_task_of_a_dead_worker_counts_as_interrupted(project: Project, agent: Agent) -> None:
    begin(agent, "test -f done")
    project.put("done")
    project.git("add", "done")
    forge(project, "task-001")
    agent.die()

    project.agent("next")("start")

    assert project.grep("RECOVERY [task-001]")


def test_a_list_of_an_older_harness_is_believed_and_then_proven(project: Project, agent: Agent) -> None:
    """And so is a list of the time before there was one."""
    for _ in range(2):
        agent.ok("add", "One", "--validate", "true")
        agent.works()
    older = project.state
    del older["proofs"]
    for task in older["tasks"]:
        del task["proof"]
        # Whatever has become of the check: what an older version has recorded stands.
        task["validation"]["command"] = "false"
    project.file.write_text(json.dumps(older))

    agent.ok("check")
    assert agent.fails(9, "start")["stop"] == {"reason": "done"}
    agent.ok("add", "Three", "--validate", "true")
    agent.ok("check")
    assert [task["status"] for task in project.state["tasks"]] == ["completed", "completed", "pending"]

    project.edit_task("task-002", validation={"command": "true"})
    assert [each["path"] for each in agent.fails(1, "check")["problems"]] == ["tasks[1].status"]

    project.file.write_text('{"tasks": [{"id": "a", "status": "completed"}]}')
    agent.ok("check")
    assert agent.fails(9, "start")["stop"] == {"reason": "done"}


def test_what_a_legacy_worker_has_completed_on_its_own_branch_is_checked_there(make_project: Make) -> None:
    """Its list says no commit; the message of the commit names the task."""
    project = make_project(mode="concurrent")
    person = project.agent("person")
    for name in ("one", "two"):
        person.ok("add", name, "--validate", f"test -f {name}")
    legacy, ours = own_work_tree(project, "old"), own_work_tree(project, "new")
    base = project.head
    project.edit_task(status="in_progress", claimed_by="old", started_at_commit=base)
    (legacy.cwd / "one").write_text("done\n")
    sh(legacy.cwd, "add", "one")
    sh(legacy.cwd, "commit", "-q", "-m", "[task-001] one")
    commit = sh(legacy.cwd, "rev-parse", "HEAD")
    project.edit_task(status="completed", completed_at="2025-07-01T10:00:00Z")

    taken = ours.ok("claim")

    assert taken["task"]["id"] == "task-002"
    done = project.task("task-001")
    assert (done["status"], done["completed_commit"]) == ("completed", commit)
    assert project.grep("WARN [task-001]", "on another branch; completed")


def test_a_commit_of_another_branch_that_fails_the_check_proves_nothing(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    project.agent("person").ok("add", "one", "--validate", "test -f one")
    legacy, ours = own_work_tree(project, "old"), own_work_tree(project, "new")
    project.edit_task(started_at_commit=project.head)
    sh(legacy.cwd, "commit", "-q", "--allow-empty", "-m", "[task-001] one")
    forge(project, "task-001")

    assert ours.ok("claim")["task"]["id"] == "task-001"
    assert project.grep("WARN [task-001]", "failed with exit code 1; pending again")

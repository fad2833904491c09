"""`harness claim` takes one task, remembers what it starts from, and refuses what it could not roll back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.git.gitrepo import NASTY, put
from tests.verbs.claimable import add
from tests.verbs.conftest import Make
from tests.verbs.project import LINE, Agent, Project, own_work_tree

# -- which task


def test_an_empty_list_is_not_said_to_be_completed(agent: Agent) -> None:
    for verb in ("start", "claim"):
        said = agent.fails(9, verb)
        assert "The list is empty" in said["message"]
        assert said["next"].startswith("harness add ")


def test_it_takes_by_priority_then_by_number(project: Project, agent: Agent) -> None:
    project.edit(
        tasks=[
            {"id": "task-1000", "status": "pending", "priority": "P1"},
            {"id": "task-999", "status": "pending", "priority": "P1"},
            {"id": "task-001", "status": "pending", "priority": "P2"},
            {"id": "late", "status": "failed", "failed_at": "2025-01-02T00:00:00Z"},
            {"id": "old", "status": "failed", "failed_at": "2025-01-01T00:00:00Z", "priority": "P1"},
            {"id": "spent", "status": "failed", "attempts": 3},
            {"id": "waits", "status": "pending", "priority": "P0", "depends_on": ["task-999"]},
        ]
    )
    order = []
    for _ in range(5):
        task = agent.ok("claim")["task"]["id"]
        order.append(task)
        agent.ok("release")
        project.edit_task(task, halt="enough")

    assert order == ["task-999", "task-1000", "task-001", "old", "late"]


def test_it_opens_a_session_if_none_is(agent: Agent) -> None:
    add(agent, "One")

    assert agent.ok("claim")["session"] == 1


def test_it_opens_another_one_if_a_person_ends_it_meanwhile(
    project: Project, agent: Agent, tmp_path: Path
) -> None:
    """The first `git status` of the claim comes after it has looked for its session."""
    add(agent, "One")
    agent.ok("start")
    ended, git = tmp_path / "ended", tmp_path / "bin" / "git"
    stop = f"HARNESS_WORKER_ID=person {sys.executable} -m harness_lib stop --session 1 >/dev/null"
    put(
        git,
        f"""#!/bin/sh
        case " $* " in *" status "*) mkdir {ended} 2>/dev/null && PATH="${{PATH#*:}}" {stop};; esac
        exec {shutil.which("git")} "$@"
        """,
    ).chmod(0o755)

    reply = agent.ok(
        "claim", PATH=f"{git.parent}:{os.environ['PATH']}", PYTHONPATH=str(Path(__file__).parents[2])
    )

    assert ended.is_dir()
    assert (reply["session"], project.task()["claimed_by"]) == (2, "agent")


def test_a_claim_is_recorded_whole(project: Project, agent: Agent) -> None:
    add(agent, "One")

    reply = agent.ok("claim")

    task = project.task()
    assert task["status"] == "in_progress"
    assert task["claimed_by"] == "agent"
    assert task["started_at_commit"] == project.head
    assert task["fence"] == 1
    assert task["worktree"] == str(project.top)
    assert task["gate"]["branch"] == "refs/heads/main"
    assert "lease_expires_at" not in task or task["lease_expires_at"] is None
    assert reply["resumed"] is False
    line = project.grep("Starting")[0]
    assert LINE.match(line)
    assert line.endswith(f"[SESSION-1] Starting [task-001] One (base={project.head[:12]})")


def test_holding_one_already_gives_that_one_again(project: Project, agent: Agent) -> None:
    add(agent, "One", "Two")
    agent.ok("claim")

    assert agent.ok("claim")["resumed"] is True
    assert agent.ok("claim", "task-001")["resumed"] is True
    assert "one task at a time" in agent.fails(2, "claim", "task-002")["error"]["message"]
    assert project.task("task-002")["status"] == "pending"


def test_what_may_not_run_is_refused_with_the_reason(project: Project, agent: Agent) -> None:
    project.without_proofs()
    project.edit(
        tasks=[
            {"id": "a", "status": "pending"},
            {"id": "b", "status": "pending", "depends_on": ["a"]},
            {"id": "spent", "status": "failed", "attempts": 3},
            {"id": "done", "status": "completed"},
        ]
    )

    for task, reason in (("b", "a"), ("spent", "used up"), ("done", "completed"), ("none", "no task")):
        assert reason in agent.fails(2, "claim", task)["error"]["message"]


def test_dry_run_names_it_and_writes_nothing(project: Project, agent: Agent) -> None:
    add(agent, "One")
    before = project.file.read_bytes(), project.log

    reply = agent.ok("claim", "--dry-run")

    assert reply["task"]["id"] == "task-001"
    assert (project.file.read_bytes(), project.log) == before


def test_the_brief_has_title_check_failure_and_the_way_to_the_last_attempt(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--description", "More about it", "--validate", "echo the reason; false")
    agent.ok("claim")
    project.put("try.txt")
    agent.fails(1, "finish")

    brief = agent.ok("claim")["brief"]

    assert "One" in brief
    assert "attempt 2 of 3" in brief
    assert "More about it" in brief
    assert "check (max 300 s): echo the reason; false" in brief
    assert "the reason" in brief.partition("last failure")[2]
    assert "harness rescue show task-001/1" in brief
    assert "try.txt" in project.git("show", "--stat", "refs/harness/rescue/task-001/1")


def test_the_brief_names_the_newest_attempt_and_no_traces_of_a_check(project: Project, agent: Agent) -> None:
    add(agent, "One")
    for name in ("1", "2", "10", "10-check", "9.2"):
        project.git("update-ref", f"refs/harness/rescue/task-001/{name}", "HEAD")

    assert agent.ok("claim")["brief"].endswith("rescue show task-001/10")


# -- the ground it starts from


def test_a_changed_tracked_file_is_refused_and_stays(project: Project, agent: Agent) -> None:
    add(agent, "One")
    project.put("tracked.txt", "mine\n")
    before = project.files

    error = agent.fails(8, "claim")["error"]

    assert "'tracked.txt'" in error["message"]
    assert "Commit it" in error["hint"]
    assert project.files == before
    assert project.task()["status"] == "pending"


@pytest.mark.parametrize("how", ["staged", "deleted", "staged new", "mode", "renamed"])
def test_every_kind_of_tracked_change_is_refused(project: Project, agent: Agent, how: str) -> None:
    add(agent, "One")
    if how == "staged":
        project.put("tracked.txt", "mine\n")
        project.git("add", "tracked.txt")
    elif how == "deleted":
        (project.top / "tracked.txt").unlink()
    elif how == "staged new":
        project.put("new.txt")
        project.git("add", "new.txt")
    elif how == "mode":
        (project.top / "tracked.txt").chmod(0o755)
    else:
        project.git("mv", "tracked.txt", "other.txt")
    status = project.git("status", "--porcelain")

    agent.fails(8, "claim")

    assert project.git("status", "--porcelain") == status


def test_untracked_files_never_refuse_and_their_content_is_kept(project: Project, agent: Agent) -> None:
    add(agent, "One")
    for name in NASTY:
        project.put(name, f"mine: {name!r}\n")

    agent.ok("claim")

    assert len(project.refs("refs/harness/before/")) == 1


def test_a_refusal_halts_the_session_so_that_the_stop_hook_lets_go(project: Project, agent: Agent) -> None:
    add(agent, "One")
    agent.ok("start")
    project.put("tracked.txt", "mine\n")

    agent.fails(8, "claim")

    assert project.state["sessions"][0]["halt"].startswith("REFUSED: ")
    project.git("checkout", "tracked.txt")
    agent.ok("claim")
    assert project.state["sessions"][0].get("halt") is None


def test_the_marker_comes_back(project: Project, agent: Agent) -> None:
    add(agent, "One")
    agent.ok("start")
    (project.top / ".harness-active").unlink()

    agent.ok("claim")

    assert project.marker


def test_who_has_changes_is_told_what_to_do_with_them_and_an_agent_never_to_stash(
    project: Project, agent: Agent
) -> None:
    agent.ok("add", "One", "--validate", "true")
    project.put("tracked.txt", "a person's\n")

    person = agent.fails(8, "claim")["error"]["hint"]
    hint = agent.fails(8, "claim", CLAUDECODE="1")["error"]["hint"]

    assert "git stash" in person
    assert "stash" not in hint
    assert "ask the user" in hint


def test_the_work_tree_that_is_advised_can_be_made(make_project: Make) -> None:
    project = make_project(mode="concurrent")
    for title in ("One", "Two"):
        project.agents[0].ok("add", title, "--validate", "true")
    worker = own_work_tree(project, "worker-2")
    worker.ok("claim")

    hint = project.agent("other", worker.cwd).fails(5, "claim")["error"]["hint"]

    command = hint.partition("(")[2].partition(")")[0]
    subprocess.run(command, shell=True, cwd=worker.cwd, check=True, capture_output=True)
    assert (project.top.parent / "worker-3").is_dir()

"""`harness claim` takes one task, remembers what it starts from, and refuses what it could not roll back."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.system.git.gitrepo import put
from tests.verbs.project import LINE, Agent, Project

# -- which task


def test_it_opens_another_session_if_one_was_ended(project: Project, one: Agent, tmp_path: Path) -> None:
    """The first `git status` of the claim comes after it has looked for its session."""
    one.ok("start")
    ended, git = tmp_path / "ended", tmp_path / "bin/git"
    stop = (
        f"HARNESS_WORKER_ID=person {shlex.quote(sys.executable)} -m harness_lib stop --session 1 >/dev/null"
    )
    put(
        git,
        f"""#!/bin/sh
        case " $* " in *" status "*) mkdir "{ended}" 2>/dev/null && PATH="${{PATH#*:}}" {stop};; esac
        exec {shutil.which("git")} "$@"
        """,
    ).chmod(0o755)

    reply = one.ok(
        "claim", PATH=f"{git.parent}:{os.environ['PATH']}", PYTHONPATH=str(Path(__file__).parents[2])
    )

    assert ended.is_dir()
    assert (reply["session"], project.task()["claimed_by"]) == (2, "agent")


def test_a_claim_is_recorded_whole(project: Project, one: Agent) -> None:
    """A dry run names the task and writes nothing."""
    before = project.file.read_bytes(), project.log
    assert one.ok("claim", "--dry-run")["task"]["id"] == "task-001"
    assert one.ok("claim", "--dry-run", "1")["next"] == "harness claim task-001"
    assert (project.file.read_bytes(), project.log) == before

    reply = one.ok("claim")

    task = project.task()
    assert task["status"] == "in_progress"
    assert task["claimed_by"] == "agent"
    assert task["started_at_commit"] == project.head
    assert task["fence"] == 1
    assert task["worktree"] == str(project.top)
    assert task["gate"]["branch"] == "refs/heads/main"
    assert task.get("lease_expires_at") is None
    assert (reply["session"], reply["resumed"]) == (1, False)
    (line,) = project.grep("Starting")
    assert LINE.match(line)
    assert line.endswith(f"[SESSION-1] Starting [task-001] One (base={project.head[:12]})")


def test_holding_one_already_gives_that_one_again(project: Project, one: Agent) -> None:
    one.ok("add", "Two", "--validate", "true")
    one.ok("claim")

    assert one.ok("claim")["resumed"] is True
    assert one.ok("claim", "task-001")["resumed"] is True
    assert "one task at a time" in one.fails(2, "claim", "task-002")["error"]["message"]
    assert project.task("task-002")["status"] == "pending"


def test_what_a_killed_command_had_begun_is_ended_first(project: Project, holder: Agent) -> None:
    """Else work on the next attempt would be taken back with the one that has failed."""
    project.put("lost")
    rescue, head = "refs/harness/rescue/task-001/1", project.head
    begun = {"action": "rollback", "at": "2026-11-29T09:00:00Z", "base": head, "head": head, "rescue": rescue}
    project.edit_task(attempts=1, intent={**begun, "category": "TEST_FAIL", "message": "It failed."})

    said = holder.ok("claim")

    assert not said["resumed"]
    assert "finish the interrupted rollback" in said["message"]
    assert "attempt 2 of 3" in said["message"]
    assert not (project.top / "lost").exists()
    assert project.refs() == [rescue]


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


def test_the_brief_has_title_check_failure_and_the_last_attempt(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--description", "More about it", "--validate", "echo the reason; false")
    agent.works({"try.txt": "x\n"}, code=1)

    brief = agent.ok("claim")["brief"]

    for words in ("One", "attempt 2 of 3", "More about it", "check (max 300 s): echo the reason; false"):
        assert words in brief
    assert "the reason" in brief.partition("last failure")[2]
    assert "harness rescue show task-001/1" in brief
    assert "try.txt" in project.git("show", "--stat", "refs/harness/rescue/task-001/1")


def test_the_brief_names_the_newest_attempt_and_no_traces_of_a_check(project: Project, one: Agent) -> None:
    for name in ("1", "2", "10", "10-check", "9.2"):
        project.git("update-ref", f"refs/harness/rescue/task-001/{name}", "HEAD")

    assert one.ok("claim")["brief"].endswith("rescue show task-001/10")


# -- the ground it starts from


@pytest.mark.parametrize("name", ["tracked.txt", "new.txt"])
def test_a_refusal_halts_the_session_and_no_stop_hook_holds(project: Project, one: Agent, name: str) -> None:
    """Who has changes is told what to do with them, and an agent never to stash."""
    one.ok("start")
    project.put(name, "mine\n")
    project.git("add", *([] if name == "tracked.txt" else [name]))
    before = project.files, project.git("status", "--porcelain")

    error = one.fails(8, "claim")["error"]
    hint = one.fails(8, "claim", CLAUDECODE="1")["error"]["hint"]

    assert f"'{name}'" in error["message"]
    assert "Commit it" in error["hint"]
    assert "git stash" in error["hint"]
    assert "stash" not in hint
    assert "ask the user" in hint
    assert (project.files, project.git("status", "--porcelain")) == before
    assert project.task()["status"] == "pending"
    (session,) = project.state["sessions"]
    assert session["halt"].startswith("REFUSED: ")
    assert f"session 1 of {session['worker']} cannot go on with task-001: REFUSED: " in one("status").out
    project.git("reset", "-q", "--hard")
    one.ok("claim")
    assert project.state["sessions"][0].keys().isdisjoint({"halt_kind", "halt_task"})
    assert project.state["sessions"][0]["halt"] is None


# -- red first


def red(agent: Agent, check: str, *options: str) -> None:
    agent.ok("add", "One", "--validate", check, "--red-first", *options)


def test_red_first_a_check_that_passes_before_any_work_is_config(project: Project, agent: Agent) -> None:
    """And what it has changed is told and put back."""
    red(agent, "echo changed > tracked.txt")

    said = agent.fails(3, "claim")

    assert "red_first" in said["error"]["message"]
    assert project.refs()[0] in said["warnings"][0]
    assert project.read("tracked.txt") == "one\n"
    task = project.task()
    assert (task["status"], task["attempts"]) == ("pending", 0)
    assert task["halt"].startswith("CONFIG: validation.red_first")
    assert len(project.grep("ERROR [task-001] [CONFIG]")) == 1
    assert agent.fails(9, "claim")["stop"] == {"reason": "waiting"}


def test_red_first_what_the_check_made_is_not_the_attempts_work(project: Project, agent: Agent) -> None:
    red(agent, "echo cache > cache.txt; echo changed > tracked.txt; test -f done")
    assert " not as committed after the check of task-001" in agent.ok("claim")["warnings"][0]
    assert project.read("tracked.txt") == "one\n"
    agent.finishes({"done": "x\n"})

    assert project.in_commit() == ["done", "tracked.txt"]
    assert project.git("show", "HEAD:tracked.txt") == "one"


def test_red_first_runs_nothing_that_nobody_trusted(project: Project, agent: Agent) -> None:
    red(agent, "touch ran; false")
    project.git("add", "-f", "harness-tasks.json")
    project.git("commit", "-qm", "list")
    project.edit_task(validation={"command": "touch evil; false", "red_first": True})

    agent.fails(8, "claim")

    assert not {"evil", "ran"} & set(project.files)
    assert (project.task()["status"], project.task()["attempts"]) == ("pending", 0)

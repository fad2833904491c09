"""The hooks beside Stop, rung in a project with a list."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.hookio.conftest import CHECKOUT, ME, OTHER, Ring, add, agent, worktree
from tests.verbs.project import Project


def test_the_session_that_works_is_told_how_to_go_on(ring: Ring, project: Project) -> None:
    add(project, "One", "Two")
    me = agent(project)
    me.ok("start")
    me.ok("claim")

    context = ring("sessionstart", {"source": "compact"}).context

    assert (
        f"there is a task list in {project.top}. 0 of 2 tasks are completed, 1 in progress, 1 pending."
        in context
    )
    assert "This agent works on it in session 1." in context
    assert f'You hold task-001 "One". Do the work, then type: {CHECKOUT}/bin/harness finish' in context


def test_another_session_is_told_to_leave_it_alone(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("claim")

    context = ring("sessionstart", {"source": "startup", "session_id": OTHER}).context

    assert f'Another agent works on it ("{ME}"); leave its tasks alone.' in context
    assert "You hold" not in context


def test_a_new_session_is_told_what_is_wrong_with_the_list(ring: Ring, project: Project) -> None:
    project.file.write_text('{"tasks": 1}', encoding="utf-8")

    assert f"{CHECKOUT}/bin/harness check" in ring("sessionstart", {"source": "startup"}).context


def test_the_list_is_not_edited_by_hand(ring: Ring, project: Project) -> None:
    add(project, "One")
    (project.top / "link.json").symlink_to("harness-tasks.json")
    for path in (str(project.file), "harness-tasks.json", "link.json", "./x/../harness-tasks.json"):
        answer = ring("pretooluse", {"tool_name": "Edit", "tool_input": {"file_path": path}}).json
        said = answer["hookSpecificOutput"]
        assert (said["hookEventName"], said["permissionDecision"]) == ("PreToolUse", "deny")
        assert f"{CHECKOUT}/bin/harness edit ID" in said["permissionDecisionReason"]


@pytest.mark.usefixtures("project")
def test_every_other_file_is(ring: Ring, tmp_path: Path) -> None:
    for path in ("README.md", str(tmp_path / "harness-tasks.json"), "src/harness-tasks.json", "", "\0"):
        assert ring("pretooluse", {"tool_name": "Edit", "tool_input": {"file_path": path}}).silent


def test_a_broken_list_may_be_repaired_by_hand(ring: Ring, project: Project) -> None:
    project.file.write_text('{"tasks": 1}', encoding="utf-8")

    assert ring("pretooluse", {"tool_name": "Edit", "tool_input": {"file_path": str(project.file)}}).silent


def test_a_session_that_has_ended_keeps_nobody_waiting(ring: Ring, project: Project) -> None:
    """Its process lives on: `/clear` ends a session of Claude Code, and not the program."""
    add(project, "One")
    first = agent(project)
    first.ok("claim")
    second = agent(project, OTHER)
    second.fails(5, "start")

    assert ring("sessionend", {"reason": "clear"}).silent
    second.ok("start")

    assert [each["worker"] for each in project.state["sessions"]] == [OTHER]
    assert project.grep("WARN", "its agent has ended")


def test_a_session_that_was_resumed_has_not_ended(ring: Ring, project: Project) -> None:
    add(project, "One")
    first = agent(project)
    first.ok("start")
    ring("sessionend", {"reason": "other"})
    ring("sessionstart", {"source": "resume"})

    agent(project, OTHER).fails(5, "start")
    assert ring("stop", {}).reason
    assert first.ok("claim")["session"] == 1


def test_an_end_from_before_the_session_is_not_its_own(ring: Ring, project: Project) -> None:
    add(project, "One")
    me = agent(project)
    me.ok("start")
    ring("sessionend", {"reason": "other"})
    me.ok("stop")
    note = next((project.top / ".harness" / "ended").iterdir())
    old = time.time() - 100
    me.ok("start")
    os.utime(note, (old, old))

    agent(project, OTHER).fails(5, "start")


def test_the_end_of_any_other_session_leaves_no_note(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("sessionend", {"reason": "other", "session_id": OTHER}).silent
    assert not (project.top / ".harness" / "ended").exists()


@pytest.mark.usefixtures("prepared")
def test_a_command_of_the_holder_renews_its_lease(ring: Ring, shared: Project) -> None:
    add(shared, "One")
    agent(shared).ok("claim")
    shared.edit_task("task-001", lease_expires_at="2020-01-01T00:00:00Z")
    agent(shared, OTHER)

    assert ring("posttooluse", {"tool_name": "Bash"}).silent

    deadline = time.monotonic() + 60
    while shared.task()["lease_expires_at"].startswith("2020") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not shared.task()["lease_expires_at"].startswith("2020")


@pytest.mark.usefixtures("prepared")
def test_a_sign_of_life_is_given_at_most_once_a_minute(ring: Ring, shared: Project) -> None:
    add(shared, "One")
    agent(shared).ok("claim")
    ring("posttooluse", {"tool_name": "Bash"})
    (note,) = (shared.top / ".harness" / "beats").iterdir()
    before = note.stat().st_mtime_ns
    # A second beat would look at the list, and stumble.
    shared.file.write_text("{", encoding="utf-8")

    assert ring("posttooluse", {"tool_name": "Bash"}).silent
    assert note.stat().st_mtime_ns == before


def test_an_exclusive_list_needs_no_beat(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("claim")
    before = project.file.read_bytes()

    assert ring("posttooluse", {"tool_name": "Bash"}).silent
    assert project.file.read_bytes() == before


def test_an_idle_teammate_takes_what_waits(ring: Ring, shared: Project) -> None:
    add(shared, "One")
    agent(shared, OTHER, worktree(shared))

    heard = ring("teammateidle", {"teammate_name": "worker1"})

    assert (heard.code, heard.out) == (2, "")
    assert f'Next is task-001 "One". Type: {CHECKOUT}/bin/harness claim' in heard.err

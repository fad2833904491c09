"""The words of the prose's hooks that users search for, and the tallies that no other test would miss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness_lib.hookio import stop_counter
from harness_lib.hookio.situation import Answer, Tally
from tests.hookio.conftest import Ring, add, agent, worktree
from tests.verbs.project import Project


def by_the_prose(place: Path, *tasks: Mapping[str, object], **config: object) -> None:
    place.mkdir()
    state = {"session_config": config, "tasks": list(tasks)}
    (place / "harness-tasks.json").write_text(json.dumps(state), encoding="utf-8")
    (place / ".harness-active").touch()


def test_a_new_session_reads_the_numbers_in_one_line(ring: Ring, project: Project) -> None:
    add(project, "One", "Two")

    lines = ring("sessionstart", {"source": "startup"}).context.splitlines()

    assert "total=2 completed=0 failed=0 pending=2 in_progress=0 blocked=0 next=task-001" in lines


def test_a_new_session_reads_error_of_a_list_that_cannot_be_read(ring: Ring, project: Project) -> None:
    add(project, "One")
    project.edit_task("task-001", status="almost")

    assert "error" in ring("sessionstart", {"source": "startup"}).context.split(":")[1]


@pytest.mark.parametrize("task", [{"status": "pending"}, {"status": "failed", "attempts": 1}])
def test_a_block_names_the_next_task_of_a_list_made_by_the_prose(
    ring: Ring, tmp_path: Path, task: dict[str, object]
) -> None:
    by_the_prose(tmp_path / "repo", {"id": "t1", "title": "First", **task})

    assert 'Next is t1 "First".' in ring("stop", {}).reason


def test_a_missing_worker_identity_is_named_where_many_share_a_list(ring: Ring, tmp_path: Path) -> None:
    by_the_prose(tmp_path / "repo", {"id": "t1", "status": "pending"}, concurrency_mode="concurrent")
    nameless = {"session_id": ""}

    assert "worker identity is missing" in ring("stop", nameless).reason
    assert "HARNESS_WORKER_ID=" in ring("stop", nameless).reason
    assert "worker identity" not in ring("stop", nameless, env={"HARNESS_WORKER_ID": "w1"}).reason


def test_the_sessions_that_the_prose_may_have_let_everybody_go_when_used_up(
    ring: Ring, tmp_path: Path
) -> None:
    """Neither hook says to start where `start` says stop."""
    by_the_prose(tmp_path / "repo", {"id": "t1", "status": "pending"}, max_sessions=2)
    list_has(tmp_path / "repo", session_count=1)
    assert ring("stop", {}).reason
    list_has(tmp_path / "repo", session_count=2)

    said = ring("stop", {})
    begun = ring("sessionstart", {"source": "startup"}).context

    assert (said.code, said.out, said.err.startswith("WARN")) == (0, "", True)
    assert "--max-sessions N" in said.err
    assert "harness start" not in said.err + begun
    assert "--max-sessions N" in begun


def list_has(place: Path, **fields: object) -> None:
    file = place / "harness-tasks.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), **fields}), encoding="utf-8")


LOGGED = """\
[2026-01-01T00:00:00Z] [SESSION-2] Completed [task-001] (commit abc)
[2026-01-01T00:00:00Z] [SESSION-3] Starting [task-002] Two (base=abc)
[2026-01-01T00:00:00Z] [SESSION-3] Completed [task-002] (commit abc)
[2026-01-01T00:00:00Z] [SESSION-3] ERROR [ENV_SETUP] no network
[2026-01-01T00:00:00Z] [SESSION-3] ERROR [task-003] [TEST_FAIL] red
"""


@pytest.mark.parametrize(
    ("mode", "most", "held"),
    [
        ("exclusive", 2, False),
        ("exclusive", 3, True),
        ("exclusive", 0, True),
        ("concurrent", 2, True),
    ],
)
def test_the_tasks_that_a_session_of_the_prose_may_do_are_counted_in_the_log(
    ring: Ring, tmp_path: Path, mode: str, most: int, *, held: bool
) -> None:
    """Workers that share a list share the number of its last session, too, so they are not counted."""
    task = {"id": "task-003", "status": "pending"}
    by_the_prose(tmp_path / "repo", task, max_tasks_per_session=most, concurrency_mode=mode)
    list_has(tmp_path / "repo", session_count=3)
    (tmp_path / "repo" / "harness-progress.txt").write_text(LOGGED, encoding="utf-8")

    said = ring("stop", {})

    assert bool(said.out) == held
    assert ("max_tasks_per_session" in said.err) != held


def test_a_task_that_another_worker_of_the_prose_has_holds_nobody(ring: Ring, tmp_path: Path) -> None:
    task = {"id": "t1", "status": "in_progress", "claimed_by": "w2"}
    by_the_prose(tmp_path / "repo", task, concurrency_mode="concurrent")

    assert ring("stop", {}, env={"HARNESS_WORKER_ID": "w1"}).silent
    assert ring("stop", {}, env={"HARNESS_WORKER_ID": "w2"}).reason
    assert ring("stop", {}).reason
    assert (tmp_path / "repo" / ".harness-active").exists()


def test_a_subagent_on_a_list_made_by_the_prose_is_held_once(ring: Ring, tmp_path: Path) -> None:
    by_the_prose(tmp_path / "repo", {"id": "t1", "status": "in_progress", "claimed_by": "s"})

    assert ring("subagentstop", {"agent_id": "s"}).reason
    assert ring("subagentstop", {"agent_id": "s", "stop_hook_active": True}).silent


def test_a_subagent_is_known_by_its_worker_id_alone(ring: Ring, shared: Project) -> None:
    """The name that its host gives it is not the one that it has claimed under."""
    add(shared, "One", "Two")
    agent(shared).ok("claim")
    sub = shared.agent("sub", worktree(shared))
    sub.ok("claim")
    sub.ok("stop")

    assert "task-002" in ring("subagentstop", {"agent_id": "x"}, env={"HARNESS_WORKER_ID": "sub"}).reason
    assert ring("subagentstop", {"agent_id": "x"}, env={"HARNESS_WORKER_ID": "other"}).silent


def test_patience_begins_anew_after_progress(tmp_path: Path) -> None:
    stop_counter.keep(str(tmp_path), "me", Tally("3:0 ", 7), Answer("block", "x", progress="3:1 "))

    assert stop_counter.read(str(tmp_path), "me").blocks == 1


def test_patience_after_progress_is_a_whole_one(ring: Ring, project: Project) -> None:
    add(project, "One", "Two")
    me = agent(project)
    me.ok("start")
    for _ in range(6):
        assert ring("stop", {}).reason
    me.ok("claim")

    for _ in range(8):
        assert ring("stop", {}).reason
    assert ring("stop", {}).out == ""


def test_a_warning_is_given_once_and_again_after_progress(tmp_path: Path) -> None:
    root, warned = str(tmp_path), Answer("allow", warning="halted", progress="p")
    stop_counter.keep(root, "me", Tally("p", 8), warned)
    assert stop_counter.read(root, "me").warning == "halted"

    stop_counter.keep(root, "me", stop_counter.read(root, "me"), Answer("block", "x", progress="q"))
    assert stop_counter.read(root, "me").warning == ""


@pytest.mark.parametrize(
    "name", ["harness-tasks.json", "harness-tasks.json.bak", "harness-progress.txt", ".harness-active"]
)
def test_a_write_over_a_file_of_ours_is_refused(ring: Ring, project: Project, name: str) -> None:
    add(project, "One")
    said = ring("pretooluse", {"tool_name": "Write", "tool_input": {"file_path": str(project.top / name)}})

    assert said.json["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_nul_in_the_directory_is_no_bug_of_ours(ring: Ring, project: Project) -> None:
    add(project, "One")
    edit = {"tool_name": "Write", "tool_input": {"file_path": "a"}, "cwd": "a\0b"}

    assert ring("pretooluse", edit).silent
    assert not list((project.top / ".harness").glob("bug-*"))

"""The Stop hook knows whose session is open: by the id, the worker, the process, or not at all."""

from __future__ import annotations

from pathlib import Path

from tests.hookio.conftest import CHECKOUT, ME, OTHER, Ring, add, agent, worktree
from tests.verbs.project import Project


def test_another_session_in_the_same_folder_is_not_held(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", {"session_id": OTHER}).silent


def test_the_same_session_is_held_in_a_sub_directory_and_in_a_worktree(
    ring: Ring, project: Project, tmp_path: Path
) -> None:
    add(project, "One")
    agent(project).ok("start")
    (project.top / "a" / "b").mkdir(parents=True)

    assert ring("stop", {}, cwd=project.top / "a" / "b").reason
    assert ring("stop", {}, cwd=worktree(project)).reason
    # Where the agent was started comes first, wherever it has gone since.
    assert ring("stop", {}, cwd=tmp_path, env={"CLAUDE_PROJECT_DIR": str(project.top)}).reason


def test_without_an_identity_everybody_is_held(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", {"session_id": None}).reason


def test_the_environment_tells_the_session_where_the_payload_does_not(ring: Ring, project: Project) -> None:
    add(project, "One")
    agent(project).ok("start")

    assert ring("stop", b"{}", env={"CLAUDE_CODE_SESSION_ID": OTHER}).silent
    assert ring("stop", b"{}", env={"CLAUDE_CODE_SESSION_ID": ME}).reason


def test_a_session_without_an_id_is_recognised_by_its_process(ring: Ring, project: Project) -> None:
    add(project, "One")
    me = project.agent("nameless", HARNESS_WORKER_ID=None)
    me.ok("start")

    assert ring("stop", {}, env={"CLAUDE_PID": str(me.process.pid)}).reason
    assert ring("stop", {}, env={"CLAUDE_PID": str(project.agents[0].process.pid)}).silent


def test_a_session_without_an_id_is_recognised_by_its_worker(ring: Ring, project: Project) -> None:
    add(project, "One")
    project.agent("worker-1").ok("start")

    assert ring("stop", {}, env={"HARNESS_WORKER_ID": "worker-1"}).reason
    assert ring("stop", {}, env={"HARNESS_WORKER_ID": "worker-2"}).silent


def test_a_list_made_by_the_prose_holds_everybody(ring: Ring, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "harness-tasks.json").write_text('{"tasks":[{"id":"t1","status":"pending"}]}', encoding="utf-8")
    (repo / ".harness-active").touch()

    assert f"Go on with: {CHECKOUT}/bin/harness start" in ring("stop", {}).reason

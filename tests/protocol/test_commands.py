"""The commands of the prose: what `init`, `add` and `status` make and show."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.protocol.clocks import Impatient
from tests.protocol.documented import Document, require_documented, seed_task
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project


def test_add_fills_in_the_defaults(project: Project, agent: Agent) -> None:
    """No check, three attempts, no dependencies, pending; all other documented fields are there and empty."""
    agent.ok("add", "Something new")

    task = project.task()
    assert task == {
        **seed_task("task-001", "Something new", None),
        "validation": {"command": None, "timeout_seconds": 300},
        **{key: task[key] for key in set(task) - set(seed_task(""))},
    }
    require_documented(project.state)
    agent.ok("claim")
    error = agent.fails(3, "finish")["error"]
    assert "validation.command" in error["message"]


def test_ids_go_on_after_the_highest_number(project: Project, agent: Agent) -> None:
    """Also beyond 999, and whatever else people call their tasks."""
    project.edit(tasks=[seed_task("task-999"), seed_task("task-007"), seed_task("release-2000")])

    assert agent.ok("add", "Next")["task"]["id"] == "task-1000"
    assert agent.ok("add", "And next")["task"]["id"] == "task-1001"
    project.without_proofs()
    for task_id in ("task-007", "task-999", "task-1000", "task-1001"):
        project.edit_task("release-2000", status="completed", completed_at="2025-07-01T10:00:00Z")
        assert agent.ok("claim", "--dry-run")["task"]["id"] == task_id
        project.edit_task(task_id, status="completed", completed_at="2025-07-01T10:00:00Z")


def test_status_shows_its_four_parts(project: Project, agent: Agent) -> None:
    """Counts with the computed blocked ones, a line per task, five lines of the log, sessions."""
    tasks: list[Document] = [
        seed_task("task-001", "Done", status="completed", completed_at="2025-07-01T10:00:00Z", attempts=1),
        seed_task("task-002", "Broken", status="failed", attempts=3, error_log=["[TEST_FAIL] no"]),
        seed_task("task-003", "Waits", depends_on=["task-002"]),
        seed_task("task-004", "Free", max_attempts=5),
    ]
    project.without_proofs()
    project.edit(tasks=tasks, session_count=4, last_session="2025-07-01T10:20:02Z")
    lines = [f"[2025-07-01T10:00:0{n}Z] [SESSION-4] WARN number {n}" for n in range(7)]
    project.put("harness-progress.txt", "\n".join(lines) + "\n")
    agent.clock = Impatient()

    said = agent("status", "--all")

    assert said.code == 0
    assert "1 of 4 completed" in said.out
    assert "1 failed" in said.out
    assert "2 pending (1 blocked)" in said.out
    shown = [line for line in said.out.splitlines() if "] task-" in line]
    assert shown == [
        "[completed] task-001: Done (1/3)",
        "[failed] task-002: Broken (3/3)",
        "[pending] task-003: Waits (0/3)",
        "[pending] task-004: Free (0/5)",
    ]
    assert [line for line in lines if line in said.out] == lines[2:]
    assert "sessions: 4" in said.out
    assert "2025-07-01T10:20:02Z" in said.out


@pytest.mark.parametrize(("answer", "asked_for"), [("y", True), ("n", False)])
def test_init_typed_in_a_terminal_asks_about_gitignore(
    make_project: Make, answer: str, asked_for: bool
) -> None:
    """Either way git ignores the files; with "no" the project's own files stay as they are."""
    project = make_project(bare=True)

    assert "[y/N]" in _type_in_a_terminal(project.top, answer, "init")

    assert (project.top / ".gitignore").exists() == asked_for
    assert project.git("status", "--porcelain") == ("?? .gitignore" if asked_for else "")


def _type_in_a_terminal(cwd: Path, answer: str, *words: str) -> str:
    """Run the command line in a real terminal, answer its question and return what it talked."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "harness_lib", *words],
        cwd=cwd,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
    ) as child:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        talk = b""
        while b"[y/N]" not in talk:
            talk += os.read(ours, 1024)
        assert child.wait(60) == 0, talk
    os.close(ours)
    return talk.decode()


def test_the_marker_stands_while_work_is_left(project: Project, agent: Agent) -> None:
    """`init` and `start` make it; the final check after the last task removes it."""
    agent.ok("add", "Something", "--validate", "true")
    agent.ok("pause")
    assert not project.marker
    agent.ok("start")
    assert project.marker
    agent.ok("claim")
    assert project.marker
    agent.ok("finish")
    assert project.marker
    agent.final_check()
    assert not project.marker

"""The commands of the legacy protocol: what `init`, `add` and `status` make and show."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

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


def test_init_asks_nothing_in_a_terminal(make_project: Make) -> None:
    """A question would swallow the next line of what somebody has pasted."""
    project = make_project(bare=True)
    ours, theirs = pty.openpty()
    os.write(ours, b"y\n")

    init, nowhere = [sys.executable, "-m", "harness_lib", "init"], subprocess.DEVNULL
    subprocess.run(init, cwd=project.top, stdin=theirs, stderr=theirs, stdout=nowhere, check=True)

    assert os.read(theirs, 10) == b"y\n"
    os.close(theirs)
    os.close(ours)
    assert not (project.top / ".gitignore").exists()
    assert project.git("status", "--porcelain") == ""

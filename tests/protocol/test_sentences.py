"""Sentences of the legacy protocol: its commands, what it keeps on disk, and when it stops."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.protocol.clocks import Impatient
from tests.protocol.documented import Document, require_documented, seed_task
from tests.verbs.conftest import Make
from tests.verbs.project import LINE, Agent, Project


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


# -- its two files: the log only grows; the list is backed up, replaced whole and restored


def test_every_write_leaves_the_generation_before_it_in_the_backup(project: Project, agent: Agent) -> None:
    """Byte for byte, through a whole attempt; a command that changes nothing leaves the backup alone."""
    backup = project.top / "harness-tasks.json.bak"
    agent.ok("add", "Something", "--validate", "test -f work.txt")
    generations = project.top / ".harness/generations"
    seen = project.file.read_bytes()
    for command in (("start",), ("claim",), ("checkpoint", "task-001", "1/1", "written"), ("finish",)):
        if command == ("finish",):
            project.put("work.txt")
        agent.ok(*command)
        kept = [path.read_bytes() for path in sorted(generations.iterdir())]
        assert kept[-1] == project.file.read_bytes()
        assert kept[-2] == backup.read_bytes()
        assert seen in kept
        seen = project.file.read_bytes()
    before = backup.read_bytes()
    agent("status")
    agent("claim")
    assert backup.read_bytes() == before


def test_the_log_only_grows(project: Project, agent: Agent) -> None:
    """Whatever happens, what stood there before stands there afterwards, in the same file."""
    log = project.top / "harness-progress.txt"
    before, inode = log.read_bytes(), log.stat().st_ino
    agent.ok("add", "Something", "--validate", "false")
    for command in (("init",), ("start",), ("claim",), ("finish",), ("stop",), ("start",), ("pause",)):
        agent(*command)
        after = log.read_bytes()
        assert after.startswith(before)
        before = after
    assert log.stat().st_ino == inode
    assert all(LINE.match(line) for line in project.log)


# -- its five stopping conditions: each ends the session with counts and a reason (exit 9)


TOTALS = "tasks_total={} completed={} failed={} pending={} blocked={}"


@pytest.fixture
def two(project: Project, agent: Agent) -> Project:
    """Return a project with a task that passes and one that never does, which has a single attempt."""
    agent.ok("add", "Passes", "--validate", "true")
    agent.ok("add", "Never", "--validate", "false", "--max-attempts", "1", "--depends-on", "task-001")
    return project


def stats(project: Project) -> list[str]:
    """Return the lines with numbers, without stamp, session and type."""
    return [line.split(" STATS ")[1] for line in project.grep(" STATS ")]


def test_all_that_remain_have_failed_for_good_or_are_blocked(two: Project, agent: Agent) -> None:
    """Also those that wait for them are then failed, and say for whom they waited."""
    agent.ok("add", "Waits", "--validate", "true", "--depends-on", "task-002")
    agent.works()
    agent.works(code=1)
    assert agent.final_check()["stop"] == {"reason": "blocked"}

    assert two.task("task-003")["error_log"] == ["[DEPENDENCY] Blocked by failed task-002"]
    assert stats(two)[-1].startswith(TOTALS.format(3, 1, 2, 0, 0))
    assert two.state["sessions"] == []
    assert not two.enable_flag
    assert agent.fails(9, "claim")["stop"] == {"reason": "blocked"}


def test_the_list_has_had_as_many_sessions_as_it_may(two: Project, agent: Agent) -> None:
    """All of them run, the last one too; one more is not counted and leaves its numbers."""
    two.configure(max_sessions=2)
    for number in (1, 2):
        assert agent.ok("start")["session"] == number
        agent.ok("stop")
    before = len(stats(two))

    assert agent.fails(9, "start")["stop"] == {"reason": "max_sessions"}

    assert len(stats(two)) == before + 1
    assert two.state["session_count"] == 2
    assert two.state["sessions"] == []
    assert two.enable_flag


def test_the_user_interrupts_in_the_middle_of_a_task(two: Project, agent: Agent) -> None:
    """Numbers and `last_session` are written, the work stays in place, and the next session picks it up."""
    two.configure(max_sessions=0)
    agent.ok("edit", "task-001", "--validate", "test -f work.txt")
    agent.ok("claim")
    two.put("work.txt")

    agent.ok("stop")

    assert stats(two)[-1].endswith("in_progress=1")
    assert two.state["last_session"]
    assert two.enable_flag
    assert two.task()["status"] == "in_progress"
    assert agent.ok("start")["task"]["id"] == "task-001"
    agent.ok("finish")
    assert two.task()["status"] == "completed"
    assert "work.txt" in two.in_commit()


def test_no_session_is_counted_but_at_its_start_and_only_its_end_is_noted(two: Project, agent: Agent) -> None:
    def facts() -> tuple[int, bool]:
        return two.state["session_count"], two.state["last_session"] is not None

    assert facts() == (0, False)
    agent.ok("start")
    assert facts() == (1, False)
    agent.ok("start")
    agent.ok("claim")
    agent.ok("checkpoint", "task-001", "1/1", "done")
    agent.ok("finish")
    assert facts() == (1, False)
    agent.ok("stop")
    assert facts() == (1, True)
    first_end = two.state["last_session"]
    two.clock.pass_(minutes=1)
    agent.ok("start")
    assert facts() == (2, True)
    assert two.state["last_session"] == first_end
    assert two.grep("[SESSION-2] LOCK acquired")

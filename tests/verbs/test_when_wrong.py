"""What the page says to type when something is wrong does what it says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from harness_lib.system.locks import mkdir_lock
from tests.verbs.project import Agent, Project

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "when-something-is-wrong.md"


def _block(title: str) -> str:
    """Return the commands below the bold `title`."""
    section = _PAGE.read_text(encoding="utf-8").split(f"**{title}")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None
    return block[1]


def _in_shell(project: Project, script: str) -> None:
    subprocess.run(["sh", "-eu", "-c", script], cwd=project.top, check=True, env=dict(os.environ))


def test_a_completed_task_is_undone_and_can_be_done_again(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "test -f made.txt")
    agent.ok("claim")
    project.put("made.txt")
    agent.ok("finish")
    show, revert, retry = _block("Undo a completed task").splitlines()
    shown = agent.ok(*show.split("#")[0].split()[1:])["message"]
    commit = project.task()["completed_commit"]
    assert commit[:7] in shown

    _in_shell(project, revert.replace("COMMIT", commit))
    agent.ok(*retry.split()[1:])

    assert not (project.top / "made.txt").exists()
    assert project.task()["status"] == "pending"


def test_everything_can_be_removed_from_a_project(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "false")
    agent.ok("claim")
    project.put("made.txt")
    agent.fails(1, "finish")
    assert project.git("for-each-ref", "refs/harness")
    project.put("mine.txt")
    lock = mkdir_lock.path_for(project.top)
    assert lock.is_dir()

    stop, _, rest = _block("Remove everything").partition("\n")
    agent.ok(*stop.split("#")[0].split()[1:])
    _in_shell(project, rest)

    assert not lock.exists()
    assert not project.git("for-each-ref", "refs/harness")
    assert not list((project.top / ".git").glob("harness*"))
    left = {path.name for path in project.top.iterdir()}
    assert not {name for name in left if name.startswith((".harness", "harness-"))}
    assert "mine.txt" in left

"""What the page says to type when something is wrong does what it says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from harness_lib.system import mkdir_lock
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project, begin, lose

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
    begin(agent, "test -f made.txt")
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


def test_failed_work_is_got_back_as_shown(project: Project, agent: Agent) -> None:
    text = _PAGE.read_text(encoding="utf-8").split("**Get failed work back**")[1].split("\n\n")[0]
    lose(agent, "made.txt")
    assert not (project.top / "made.txt").exists()

    for command in re.findall(r"`harness ([a-z][^`]*)`", text):
        agent.ok(*command.split())

    assert project.read("made.txt") == "x\n"


def test_everything_can_be_removed_from_a_project(make_project: Make) -> None:
    """But for what the page names: the lines that git ignores our files by."""
    project = make_project(bare=True)
    exclude = project.top / ".git/info/exclude"
    before = exclude.read_text(encoding="utf-8").splitlines() if exclude.exists() else []
    agent = project.agent()
    agent.ok("init")
    lose(agent, "made.txt")
    assert project.git("for-each-ref", "refs/harness")
    project.put("mine.txt")
    lock = mkdir_lock.path_for(project.top)
    assert lock.is_dir()

    stop, _, rest = _block("Remove everything").partition("\n")
    agent.ok(*stop.split("#")[0].split()[1:])
    _in_shell(project, rest)

    assert not lock.exists()
    assert project.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert not [path for path in (project.top / ".git").rglob("*harness*") if path.is_file()]
    added = [line for line in exclude.read_text(encoding="utf-8").splitlines() if line not in before]
    assert all(line.startswith(("/harness-", "/.harness")) for line in added), added
    left = {path.name for path in project.top.iterdir()}
    assert not {name for name in left if name.startswith((".harness", "harness-"))}
    assert "mine.txt" in left

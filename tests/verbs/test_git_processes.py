"""How many processes of git a verb starts, and a task of a run: each costs a tenth of a Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.attempts import worker_worktrees
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put
from tests.verbs.project import Project

COUNTING = """#!/bin/sh
echo "$*" >> {log}
exec {git} "$@"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that gets a line for each process of git from now on."""
    git, log, before = shutil.which("git"), tmp_path / "told", tmp_path / "bin"
    before.mkdir()
    put(before / "git", COUNTING.format(log=log, git=git), executable=True)
    monkeypatch.setenv("PATH", f"{before}{os.pathsep}{os.environ['PATH']}")
    return log


def test_a_verb_asks_git_no_more_often_than_it_has_to(project: Project, log: Path) -> None:
    env = {**os.environ, "HARNESS_WORKER_ID": "one"}

    def asked(*argv: str) -> int:
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "harness_lib", *argv]
        subprocess.run(command, cwd=project.top, env=env, check=True, capture_output=True)
        return len(log.read_text().splitlines()) if log.exists() else 0

    asked("add", "One", "--validate", "true")
    count = {
        verb: asked(verb, *more) for verb, *more in (("start",), ("claim",), ("checkpoint", "1/2", "half"))
    }
    project.put("work.txt", "work\n")
    count["finish"] = asked("finish")

    # Two of claim's and two of finish's ask what an attempt leaves beside its commits.
    # Two more of finish's ask whether it changed what judges it.
    bars = {"start": 3, "claim": 6, "checkpoint": 4, "finish": 11}
    assert {verb: number for verb, number in count.items() if number > bars[verb]} == {}


FEW, MANY = 2, 6


# One agent does nothing; what the other one makes is captured, committed, and merged into the checkout.
@pytest.mark.parametrize(("agent", "bar"), [("true", 7), ("echo done > $HARNESS_TASK_ID", 30)], ids=str)
def test_a_run_asks_git_and_changes_the_list_no_more_often_than_it_has_to_for_a_task(
    tmp_path: Path, log: Path, agent: str, bar: int
) -> None:
    workshop = Workshop.make(tmp_path)
    # One is left, so that both runs end alike.
    tasks = [{"title": f"Task {n}", "validation": {"command": "true"}} for n in range(FEW + MANY + 1)]
    workshop.fill(tasks)
    asked, changed = [], []
    for most in (FEW, MANY):
        before = _changes(workshop)
        log.unlink(missing_ok=True)

        workshop.run("-j", "1", "--max-tasks", str(most), agent=agent)

        asked.append(len(log.read_text().splitlines()))
        changed.append(_changes(workshop) - before)

    assert (asked[1] - asked[0]) / (MANY - FEW) <= bar
    # The claim, that its work is to be merged, that the branch moves, and the outcome.
    assert (changed[1] - changed[0]) / (MANY - FEW) == 4


def test_a_new_work_tree_of_a_worker_asks_git_five_times_beside_making_it(tmp_path: Path, log: Path) -> None:
    ctx = Workshop.make(tmp_path).context()
    commit = ctx.main.head()
    assert commit is not None
    assert ctx.git.head() == commit
    log.unlink(missing_ok=True)
    worker_worktrees.checkout_clean(ctx, tmp_path / "run/1", commit)
    asked = log.read_text()

    # What is gone is forgotten; settings and refs are the clone's; submodules would be filled, and what
    # git ignores may be needed.
    words = ("worktree prune", "worktree add", "config --list", "for-each-ref", "ls-tree", "ls-files")
    assert [sum(word in line for line in asked.splitlines()) for word in words] == [1] * len(words)
    assert asked.count("\n") == len(words)


def _changes(workshop: Workshop) -> int:
    """Return how often the list was written: each time has a generation."""
    return max(int(file.stem) for file in (workshop.top / ".harness/generations").iterdir())

"""Lock files of git that stand in a work tree of a run: no night ends because of one."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from harness_lib.attempts import target_branch
from harness_lib.core.context import Context
from harness_lib.system.git import clones, locks
from tests.conftest import for_release
from tests.runs.workshop import HURRIED, Workshop
from tests.system.git.gitrepo import put, sh


@pytest.mark.release
@pytest.mark.parametrize("workers", [*for_release("1"), "2"])
def test_one_that_cannot_be_handed_back_is_halted(workshop: Workshop, tmp_path: Path, workers: str) -> None:
    """A living git that is not ours holds our index of the work tree, for as long as the night is."""
    started, go, news = tmp_path / "started", tmp_path / "go", tmp_path / "told"
    workshop.add("Stuck", "grep -q done a", do=f"write a half\ntouch {started}\nwait {go}")
    workshop.file_task("b")
    workshop.file_task("c")
    run = workshop.start("-j", workers, "--notify", f"echo $HARNESS_EVENT >> {news}", **HURRIED)
    workshop.wait_for("the agent starts", started.exists)
    place = workshop.task("task-001")["worktree"]
    own = clones.at(workshop.git, Path(place))
    assert own is not None
    (own.git_dir / "index.lock").touch()
    holder = subprocess.Popen(["git", "hash-object", "--stdin"], cwd=place, stdin=subprocess.PIPE)
    try:
        go.touch()
        assert run.wait(90) == 9, workshop.printed
    finally:
        holder.communicate()

    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed", "task-003": "completed"}
    stuck = workshop.task("task-001")
    assert (stuck["attempts"], "index.lock" in stuck["halt"]) == (0, True)
    assert "harness retry task-001" in stuck["halt"]
    kept = sh(workshop.top, "for-each-ref", "--format=%(refname)", "refs/harness/rescue/task-001").split()
    assert sh(workshop.top, "show", f"{kept[0]}:a").strip() == "half"
    assert "harness rescue show task-001/1" in stuck["halt"]
    # Nobody waits for the command that brings it.
    workshop.wait_for("the news", lambda: news.exists() and news.read_text())
    assert news.read_text().split() == ["stopped"]
    workshop.ends(9, **HURRIED)


@pytest.mark.parametrize("name", [*for_release("packed-refs"), "refs/heads/harness/main"])
def test_what_has_gone_over_is_forgotten_past_a_lock_of_a_dead_git(workshop: Workshop, name: str) -> None:
    """The one that was killed had just brought it over, and was at deleting the branch where it waited."""
    workshop.file_task("one")
    put(workshop.top / "README.md", "the user is writing\n")
    workshop.ends(9)
    sh(workshop.top, "restore", "README.md")
    sh(workshop.top, "merge", "-q", "--ff-only", "harness/main")
    sh(workshop.top, "pack-refs", "--all")
    # What a holder that was killed leaves: since when it was at work, and what its git had locked.
    put(workshop.top / ".git" / locks.LOCK_NAME, f"{time.time() - 1:.3f}\n")
    put(workshop.top / ".git" / f"{name}.lock", "")
    env = {**os.environ, "HARNESS_HOME": str(workshop.home)}

    assert target_branch.deliver(Context(env=env, cwd=workshop.top), "refs/heads/main") is None

    workshop.all_is_well()

"""Lock files of git that a killed `git add` leaves in a work tree of a run: no night ends because of one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness_lib.attempts import target_branch
from harness_lib.core.context import Context
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

OWN = ("index.lock", "HEAD.lock")
SHARED = ("packed-refs.lock", "refs/heads/main.lock", "refs/heads/harness/main.lock", "config.lock")


def _leave(*names: str) -> str:
    """Return the step of an agent that leaves these locks, of its work tree's or of the repository's."""
    own = " ".join(f"$(git rev-parse --git-dir)/{name}" for name in names if name in OWN)
    shared = " ".join(f"$(git rev-parse --git-common-dir)/{name}" for name in names if name in SHARED)
    return f"sh mkdir -p $(git rev-parse --git-common-dir)/refs/heads/harness; touch {own} {shared}"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_locks_that_an_agent_leaves_in_its_work_tree_stop_nobody(workshop: Workshop, workers: str) -> None:
    workshop.add("Leaves", "grep -q done a", do=f"write a done\n{_leave(*OWN)}")
    workshop.add("Fails", "grep -q done b", do=f"write b half\n{_leave(*OWN)}\nthen write b done")
    workshop.file_task("c")

    said = workshop.run("-j", workers)

    assert said.returncode == 0, said.stdout + said.stderr
    assert set(workshop.statuses().values()) == {"completed"}
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_locks_that_an_agent_leaves_in_the_repository_stop_nobody(workshop: Workshop) -> None:
    workshop.add("Leaves", "grep -q done a", do=f"write a done\n{_leave(*SHARED)}")
    workshop.file_task("b")

    said = workshop.run("-j", "2")

    assert said.returncode == 0, said.stdout + said.stderr
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_a_lock_that_a_killed_run_has_left_does_not_stop_the_next(workshop: Workshop, tmp_path: Path) -> None:
    started = tmp_path / "started"
    workshop.add(
        "Leaves", "grep -q done a", do=f"write a done\n{_leave(*OWN)}\ntouch {started}\nonce sleep 99"
    )
    run = workshop.start()
    workshop.wait_for("the agent starts", started.exists)
    run.kill()
    run.wait()

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    workshop.done_is_done()
    workshop.nothing_is_left_over()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_task_that_cannot_be_handed_back_is_halted_and_the_others_are_done(
    workshop: Workshop, tmp_path: Path, workers: str
) -> None:
    """A living git that is not ours holds the index of the work tree, for as long as the night is."""
    started, go, news = tmp_path / "started", tmp_path / "go", tmp_path / "told"
    workshop.add("Stuck", "grep -q done a", do=f"write a half\ntouch {started}\nwait {go}")
    workshop.file_task("b")
    workshop.file_task("c")
    run = workshop.start("-j", workers, "--notify", f"echo $HARNESS_EVENT >> {news}")
    workshop.wait_for("the agent starts", started.exists)
    place = workshop.task("task-001")["worktree"]
    Path(sh(Path(place), "rev-parse", "--git-dir"), "index.lock").touch()
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
    assert news.read_text().split() == ["stopped"]
    assert workshop.run().returncode == 9


@pytest.mark.parametrize("name", ["packed-refs", "refs/heads/harness/main"])
def test_what_has_gone_over_is_forgotten_past_a_lock_that_a_killed_git_has_left(
    workshop: Workshop, name: str
) -> None:
    """The one that was killed had just brought it over, and was at deleting the branch where it waited."""
    workshop.file_task("one")
    put(workshop.top / "README.md", "a person is writing\n")
    assert workshop.run("--no-final-check").returncode == 9
    sh(workshop.top, "restore", "README.md")
    sh(workshop.top, "merge", "-q", "--ff-only", "harness/main")
    sh(workshop.top, "update-ref", "refs/harness/seen/heads/harness/main", "main")
    sh(workshop.top, "pack-refs", "--all")
    put(workshop.top / ".git" / f"{name}.lock", "")
    env = {**os.environ, "HARNESS_HOME": str(workshop.home)}

    assert target_branch.deliver(Context(env=env, cwd=workshop.top), "refs/heads/main") is None

    workshop.done_is_done()
    workshop.nothing_is_left_over()

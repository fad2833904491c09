"""Agents that remove or move the branch their work is for: it is put back, and nothing of a person's is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

MAIN = "refs/heads/main"


@pytest.mark.parametrize(
    "harm",
    [
        f"git update-ref -d {MAIN}",
        f"git update-ref {MAIN} HEAD~1",
        f"git commit -q --allow-empty -m unchecked && git update-ref {MAIN} HEAD",
        f"git commit -q --allow-empty -m a && git update-ref {MAIN} HEAD && git update-ref -d {MAIN}",
    ],
)
def test_a_branch_that_an_agent_removes_or_moves_is_put_back(workshop: Workshop, harm: str) -> None:
    workshop.file_task("first")
    workshop.add("Harm", "grep -q done f", "--max-attempts", "1", do=f"sh {harm}\nwrite f half")
    workshop.file_task("last")

    said = workshop.run()

    assert said.returncode == 9, said.stdout + said.stderr
    assert list(workshop.statuses().values()) == ["completed", "failed", "completed"]
    assert "main is put back" in said.stdout
    assert "unchecked" not in sh(workshop.top, "log", "--format=%s", "main")
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_where_an_agent_has_moved_the_branch_others_do_not_go_on_from(
    workshop: Workshop, tmp_path: Path
) -> None:
    moved, go = tmp_path / "moved", tmp_path / "go"
    move = f"git commit -q --allow-empty -m unchecked && git update-ref {MAIN} HEAD"
    harm = f"sh {move}\ntouch {moved}\nwait {go}"
    workshop.add("Harm", "false", "--max-attempts", "1", do=harm)
    workshop.add("Beside", "grep -q done f", do=f"wait {moved}\nwrite f done")
    workshop.file_task("g", "--depends-on", "task-002")
    run = workshop.start("-j", "2", "--no-final-check")
    workshop.wait_for("the others are done", lambda: workshop.statuses()["task-003"] == "completed")
    go.touch()

    assert run.wait(90) == 9, workshop.printed
    assert list(workshop.statuses().values()) == ["failed", "completed", "completed"]
    assert "main is put back" in workshop.printed
    assert "unchecked" not in sh(workshop.top, "log", "--format=%s", "main")
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_what_was_merged_since_the_branch_was_last_seen_stays(workshop: Workshop) -> None:
    """A worker may be killed after it has moved the branch and before it has noted that."""
    workshop.file_task("first")
    stale = "sh git update-ref refs/harness/seen/heads/main HEAD~1"
    workshop.add("Late", "grep -q done f", do=f"{stale}\nwrite f done")
    sh(workshop.top, "switch", "-q", "-c", "mine")

    said = workshop.run("--target", "main")

    assert said.returncode == 0, said.stdout + said.stderr
    assert "put back" not in said.stdout
    assert sh(workshop.top, "show", "main:first", "main:f").split() == ["done", "done"]


def test_finished_work_that_waits_is_put_back_when_an_agent_removes_its_branch(workshop: Workshop) -> None:
    workshop.file_task("first")
    workshop.add("Harm", "grep -q done f", do="sh git branch -D harness/main\nwrite f done")
    put(workshop.top / "README.md", "a person is writing\n")

    said = workshop.run()

    assert said.returncode == 9, said.stdout + said.stderr
    assert sh(workshop.top, "show", "harness/main:first") == "done"
    assert sh(workshop.top, "show", "harness/main:f") == "done"


def test_what_a_person_does_to_the_branch_meanwhile_stays(workshop: Workshop, tmp_path: Path) -> None:
    workshop.file_task("first")
    assert workshop.run().returncode == 0
    started, go = tmp_path / "started", tmp_path / "go"
    workshop.add("Slow", "grep -q done f", do=f"touch {started}\nwait {go}\nwrite f done")
    run = workshop.start("--no-final-check")
    workshop.wait_for("the agent starts", started.exists)
    sh(workshop.top, "commit", "-q", "--amend", "-m", "said better")
    mine = sh(workshop.top, "rev-parse", "main")
    go.touch()

    assert run.wait(90) == 0, workshop.printed
    assert workshop.git.is_ancestor(mine, MAIN)
    assert "put back" not in workshop.printed


def test_a_branch_that_was_lost_before_a_run_is_named_with_its_commit(workshop: Workshop) -> None:
    workshop.file_task("f")
    tip = sh(workshop.top, "rev-parse", "main")
    sh(workshop.top, "update-ref", "-d", MAIN)

    for said in (workshop.run(), _claim(workshop)):
        assert said.returncode == 7, said.stdout + said.stderr
        assert "--allow-empty" not in said.stderr
        assert f"git branch main {tip}" in said.stderr

    workshop.harness("stop")
    sh(workshop.top, "branch", "main", tip)
    assert workshop.run().returncode == 0
    workshop.done_is_done()


def _claim(workshop: Workshop) -> subprocess.CompletedProcess[str]:
    assert workshop.harness("start").returncode == 0
    return workshop.harness("claim")


def test_a_branch_that_has_no_commit_beside_others_names_one_of_them(workshop: Workshop) -> None:
    workshop.file_task("f")
    sh(workshop.top, "checkout", "-q", "--orphan", "new")

    said = workshop.run()

    assert said.returncode == 7, said.stdout + said.stderr
    assert "git switch main" in said.stderr

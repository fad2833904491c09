"""A branch that the user has moved or lost: their move stays, and what was lost is named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh

MAIN = "refs/heads/main"


def test_what_the_user_does_to_the_branch_meanwhile_stays(workshop: Workshop, tmp_path: Path) -> None:
    workshop.file_task("first")
    workshop.ends(0)
    started, go = tmp_path / "started", tmp_path / "go"
    workshop.add("Slow", "grep -q done f", do=f"touch {started}\nwait {go}\nwrite f done")
    run = workshop.start()
    workshop.wait_for("the agent starts", started.exists)
    sh(workshop.top, "commit", "-q", "--amend", "-m", "said better")
    mine = sh(workshop.top, "rev-parse", "main")
    go.touch()

    assert run.wait(90) == 0, workshop.printed
    assert workshop.git.is_ancestor(mine, MAIN)


@pytest.mark.release
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
    workshop.ends(0)
    workshop.done_is_done()


def _claim(workshop: Workshop) -> subprocess.CompletedProcess[str]:
    assert workshop.harness("start").returncode == 0
    return workshop.harness("claim")


def test_a_branch_that_has_no_commit_beside_others_names_one_of_them(workshop: Workshop) -> None:
    workshop.file_task("f")
    sh(workshop.top, "checkout", "-q", "--orphan", "new")

    said = workshop.ends(7)

    assert "git switch main" in said.stderr

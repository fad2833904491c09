"""Finished work waits while a person's checkout is in use, goes over by itself, and is never lost between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh


def test_a_checkout_with_changes_is_not_touched_and_the_work_waits(workshop: Workshop) -> None:
    workshop.file_task("one")
    workshop.file_task("two")
    put(workshop.top / "README.md", "a person is writing\n")
    before = sh(workshop.top, "rev-parse", "main")

    said = workshop.run("--json")

    assert said.returncode == 9, said.stdout + said.stderr
    assert json.loads(said.stdout.splitlines()[-1])["stop"] == {"reason": "waiting"}
    assert "git merge harness/main" in said.stdout
    assert "git merge harness/main" in workshop.harness("status").stdout
    assert sh(workshop.top, "rev-parse", "main") == before
    assert (workshop.top / "README.md").read_text() == "a person is writing\n"
    assert not (workshop.top / "one").exists()

    sh(workshop.top, "commit", "-qam", "a person's")
    sh(workshop.top, "merge", "-q", "--no-edit", "harness/main")
    assert (workshop.top / "one").exists()
    workshop.file_task("three")
    assert workshop.run().returncode == 0
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_what_waits_is_joined_with_what_a_person_has_committed_meanwhile(workshop: Workshop) -> None:
    workshop.file_task("one")
    put(workshop.top / "README.md", "a person is writing\n")
    assert workshop.run().returncode == 9
    sh(workshop.top, "commit", "-qam", "a person's")
    mine = sh(workshop.top, "rev-parse", "main")
    assert "git merge harness/main" in workshop.harness("status").stdout

    workshop.add(
        "Both", "grep -q writing README.md && grep -q done one && grep -q done two", do="write two done"
    )
    assert workshop.run().returncode == 0

    assert workshop.task("task-002")["attempts"] == 0
    assert workshop.git.is_ancestor(mine, "refs/heads/main")
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_what_waits_and_conflicts_with_a_persons_commit_is_theirs_to_merge(workshop: Workshop) -> None:
    workshop.add("One", "grep -q done README.md", do="write README.md done")
    put(workshop.top / "README.md", "a person is writing\n")
    assert workshop.run().returncode == 9
    sh(workshop.top, "commit", "-qam", "a person's")
    mine = sh(workshop.top, "rev-parse", "main")

    workshop.file_task("two")
    said = workshop.run()

    assert said.returncode == 9, said.stdout + said.stderr
    assert "git merge harness/main" in said.stdout
    assert sh(workshop.top, "rev-parse", "main") == mine
    assert sh(workshop.top, "show", "harness/main:two") == "done"


def test_what_waits_goes_over_once_nothing_is_in_the_way(workshop: Workshop) -> None:
    workshop.file_task("one")
    put(workshop.top / "one", "a person's own, untracked\n")
    assert workshop.run().returncode == 9
    assert (workshop.top / "one").read_text() == "a person's own, untracked\n"
    (workshop.top / "one").rename(workshop.top.parent / "mine")

    before = sh(workshop.top, "rev-parse", "main")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    after = sh(workshop.top, "rev-parse", "main")
    gone = "What waited on the branch harness/main has gone to main: git log --oneline"
    assert f"{gone} {before}..{after}" in said.stdout, said.stdout
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_what_waits_is_joined_at_the_end_once_every_check_has_passed_on_both(workshop: Workshop) -> None:
    workshop.file_task("one")
    put(workshop.top / "README.md", "a person is writing\n")
    assert workshop.run().returncode == 9
    sh(workshop.top, "commit", "-qam", "a person's")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert "git merge" not in said.stdout
    assert "What waited on the branch harness/main has gone to main" in said.stdout
    assert (workshop.top / "README.md").read_text() == "a person is writing\n"
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_what_waits_beside_a_persons_commits_stays_where_nothing_is_checked_at_the_end(
    workshop: Workshop,
) -> None:
    """Nobody has tried the two together: the person merges them, or a run with its final checks does."""
    workshop.file_task("one")
    put(workshop.top / "README.md", "a person is writing\n")
    assert workshop.run("--no-final-check").returncode == 9
    sh(workshop.top, "commit", "-qam", "a person's")
    mine = sh(workshop.top, "rev-parse", "main")

    said = workshop.run("--no-final-check")

    assert said.returncode == 9, said.stdout + said.stderr
    assert sh(workshop.top, "rev-parse", "main") == mine
    waits = "Finished work waits on the branch harness/main: main has commits of its own."
    assert f"{waits} Take it over with: git merge harness/main" in said.stdout, said.stdout
    assert workshop.run().returncode == 0
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_a_checkout_that_git_has_locked_is_not_waited_for(workshop: Workshop) -> None:
    workshop.file_task("one")
    lock = put(workshop.top / ".git" / "index.lock", "")

    said = workshop.run("--no-final-check")

    assert said.returncode == 9, said.stdout + said.stderr
    assert "git merge harness/main" in said.stdout
    locked = (
        f"git's lock {lock} stands there: let the command that made it end; if none runs, delete that file"
    )
    assert locked in said.stdout
    assert locked in workshop.harness("status").stdout
    lock.unlink()
    assert workshop.run().returncode == 0
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_a_merge_of_a_persons_that_has_not_ended_is_named_as_what_is_in_the_way(workshop: Workshop) -> None:
    workshop.file_task("one")
    sh(workshop.top, "switch", "-q", "-c", "side")
    sh(workshop.top, "commit", "-q", "--allow-empty", "-m", "Side")
    sh(workshop.top, "switch", "-q", "main")
    sh(workshop.top, "merge", "-q", "--no-ff", "--no-commit", "side")

    said = workshop.run("--no-final-check")

    assert said.returncode == 9, said.stdout + said.stderr
    assert "a merge of yours is under way there: end it first. Take it over with" in said.stdout
    sh(workshop.top, "commit", "-q", "--no-edit")
    sh(workshop.top, "merge", "-q", "--no-edit", "harness/main")
    assert (workshop.top / "one").exists()


def test_work_does_not_conflict_with_what_waits_when_a_person_commits_before_and_during_it(
    workshop: Workshop, tmp_path: Path
) -> None:
    """The attempt starts on a merge of both; by its end that merge is another one."""
    workshop.add("One", "grep -q one f", do="write f one")
    put(workshop.top / "README.md", "a person is writing\n")
    assert workshop.run().returncode == 9
    sh(workshop.top, "commit", "-qam", "a person's, before")
    started, go = tmp_path / "started", tmp_path / "go"
    workshop.add("Two", "grep -q two f", do=f"write f two\ntouch {started}\nwait {go}")
    put(workshop.top / "g", "a person's file\n")
    sh(workshop.top, "add", "g")
    put(workshop.top / "README.md", "and writes on\n")
    run = workshop.start()
    workshop.wait_for("the agent starts", started.exists)
    sh(workshop.top, "commit", "-qm", "a person's, during")
    sh(workshop.top, "checkout", "-q", "README.md")
    go.touch()

    assert run.wait(90) == 0, workshop.printed
    assert "conflicts" not in workshop.printed
    assert workshop.task("task-002")["attempts"] == 0
    assert (workshop.top / "f").read_text().split() == ["one", "two"]
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def _left_behind(workshop: Workshop) -> str:
    """Let two tasks be done, and the checkout stand where the branch was before the second one was merged."""
    workshop.file_task("one")
    workshop.file_task("two")
    assert workshop.run("--no-final-check").returncode == 0
    tip = sh(workshop.top, "rev-parse", "main")
    sh(workshop.top, "reset", "-q", "--hard", "main~1")
    _moved_elsewhere(workshop, tip)
    assert sh(workshop.top, "status", "--porcelain") == "D  two"
    return tip


def _moved_elsewhere(workshop: Workshop, commit: str) -> None:
    """Move main as a process in another work tree does, without a look at the project's own checkout."""
    beside = workshop.top.parent / "beside"
    sh(workshop.top, "worktree", "add", "-q", "--detach", str(beside))
    sh(beside, "update-ref", "refs/heads/main", commit)
    sh(workshop.top, "worktree", "remove", "--force", str(beside))


def test_a_checkout_that_we_have_left_behind_its_branch_comes_after(workshop: Workshop) -> None:
    tip = _left_behind(workshop)
    put(workshop.top / "mine", "a person's own, untracked\n")
    workshop.file_task("three")

    said = workshop.run("--no-final-check")

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.git.is_ancestor(tip, "refs/heads/main")
    workshop.done_is_done()
    (workshop.top / "mine").unlink()
    workshop.nothing_is_left_over()


@pytest.mark.parametrize("edited", ["two", "README.md"])
def test_what_a_person_has_written_where_we_have_left_them_behind_is_not_touched(
    workshop: Workshop, edited: str
) -> None:
    _left_behind(workshop)
    put(workshop.top / edited, "a person is writing\n")
    sh(workshop.top, "add", edited)
    before = sh(workshop.top, "status", "--porcelain")
    workshop.file_task("three")

    said = workshop.run("--no-final-check")

    assert said.returncode == 9, said.stdout + said.stderr
    assert sh(workshop.top, "status", "--porcelain") == before
    assert (workshop.top / edited).read_text() == "a person is writing\n"


def test_a_branch_that_somebody_else_has_moved_is_not_followed(workshop: Workshop) -> None:
    _left_behind(workshop)
    tree = sh(workshop.top, "rev-parse", "main^{tree}")
    theirs = sh(workshop.top, "commit-tree", "-p", "main", "-m", "somebody's", tree)
    _moved_elsewhere(workshop, theirs)
    workshop.file_task("three")

    assert workshop.run("--no-final-check").returncode == 9
    assert sh(workshop.top, "status", "--porcelain") == "D  two"


def test_work_that_a_person_takes_back_in_the_index_stays_taken_back(workshop: Workshop) -> None:
    workshop.file_task("one")
    workshop.file_task("two")
    assert workshop.run("--no-final-check").returncode == 0
    sh(workshop.top, "restore", "--source=main~1", "--staged", "--worktree", ".")
    workshop.file_task("three")

    assert workshop.run("--no-final-check").returncode == 9
    assert sh(workshop.top, "status", "--porcelain") == "D  two"


def test_taking_back_is_known_as_a_persons_also_after_a_checkout_has_come_after(workshop: Workshop) -> None:
    _left_behind(workshop)
    workshop.file_task("three")
    assert workshop.run("--no-final-check").returncode == 0
    sh(workshop.top, "restore", "--source=main~2", "--staged", "--worktree", ".")
    workshop.file_task("four")

    assert workshop.run("--no-final-check").returncode == 9
    assert sh(workshop.top, "status", "--porcelain").splitlines() == ["D  three", "D  two"]

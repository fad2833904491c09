"""What a worker's place has in it, wherever the project is, and how many sessions a run takes."""

from __future__ import annotations

import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_lib.attempts import worker_worktrees
from harness_lib.core.context import Context
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

HARNESS = f"{shlex.quote(sys.executable)} -m harness_lib"


def test_each_work_tree_is_prepared_once_with_ports_of_its_own(workshop: Workshop, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    facts = '"$HARNESS_WORKER_NUMBER" "$HARNESS_PORT_FIRST" "$HARNESS_PORT_LAST" "$PWD"'
    put(workshop.top / "harness-init.sh", f"echo init {facts} >> {seen}\n")
    # Each waits for the other: two workers, whichever gets which task.
    for mine, other in (("a", "b"), ("b", "a")):
        meet = f"touch {tmp_path / mine}\nwait {tmp_path / other}"
        workshop.add(
            mine,
            f"echo check {facts} >> {seen}",
            do=f"{meet}\nsh echo agent {facts} >> {seen}\nwrite {mine} x",
        )
    workshop.file_task("later")

    workshop.ends(0, "-j", "2")

    lines = [line.split() for line in seen.read_text().splitlines()]
    theirs = [line for line in lines if len(line) == 5]
    assert {(line[0], *line[1:4]) for line in theirs} == {
        (who, number, first, last)
        for who in ("init", "check", "agent")
        for number, first, last in (("1", "20000", "20099"), ("2", "20100", "20199"))
    }
    assert len([line for line in theirs if line[0] == "init"]) == 2
    assert all(line[4].endswith("/" + line[1]) for line in theirs)


@pytest.mark.release
def test_a_work_tree_that_a_program_has_changed_is_cleaned_again(workshop: Workshop) -> None:
    """Between its preparation and the claim: here `harness-init.sh`, else what outlives a killed worker."""
    put(workshop.top / "lock", "as committed\n")
    sh(workshop.top, "add", "lock")
    sh(workshop.top, "commit", "-q", "-m", "A lock file")
    put(workshop.top / "harness-init.sh", 'test -z "$HARNESS_WORKER_NUMBER" || echo renewed >> lock\n')
    workshop.file_task("one")

    said = workshop.ends(0)

    assert "The work tree is cleaned once more." in said.stdout
    assert sh(workshop.top, "show", "main:lock") == "as committed"
    workshop.done_is_done()


@pytest.mark.release
def test_what_lies_where_a_work_tree_has_to_be_makes_way(workshop: Workshop) -> None:
    workshop.file_task("one")
    ctx = Context(env={**os.environ, "HARNESS_HOME": str(workshop.home)}, cwd=workshop.top)
    dead = worker_worktrees.directory_of(ctx, "run-dead")
    put(dead.worktree(1) / "half" / "made", "x\n")
    place = worker_worktrees.directory_of(ctx, "run-next")
    put(place.worktree(1) / "half" / "made", "x\n")
    put(place.worktree(2), "a file\n")

    for number in (1, 2):
        git, new = worker_worktrees.checkout_clean(
            ctx, place.worktree(number), sh(workshop.top, "rev-parse", "HEAD")
        )
        assert new
        assert sorted(path.name for path in git.top.iterdir()) == [".git", ".gitignore", "README.md"]

    workshop.ends(0)
    workshop.all_is_well()


def test_a_run_that_begins_has_its_place_although_others_end(workshop: Workshop) -> None:
    """The directory of all runs goes when it is empty, which may be the moment before it is needed."""
    commit = sh(workshop.top, "rev-parse", "HEAD")

    def begin_and_end(name: str) -> None:
        ctx = Context(env={**os.environ, "HARNESS_HOME": str(workshop.home)}, cwd=workshop.top)
        for _ in range(200):
            place = worker_worktrees.directory_of(ctx, name)
            put(place.lock, "")
            assert worker_worktrees.teardown(ctx, place, commit) == []

    with ThreadPoolExecutor() as threads:
        for each in [threads.submit(begin_and_end, f"run-{number}") for number in range(4)]:
            each.result()

    assert list((workshop.home / "worktrees").iterdir()) == []


def test_the_place_of_another_run_stays(workshop: Workshop) -> None:
    ctx = Context(env={**os.environ, "HARNESS_HOME": str(workshop.home)}, cwd=workshop.top)
    commit = sh(workshop.top, "rev-parse", "HEAD")
    first, second = (worker_worktrees.directory_of(ctx, name) for name in ("run-1", "run-2"))
    worker_worktrees.checkout_clean(ctx, first.worktree(1), commit)
    assert worker_worktrees.teardown(ctx, first, commit) == []
    assert not (workshop.home / "set-aside").exists()
    assert second.path.is_dir()
    assert worker_worktrees.teardown(ctx, second, commit) == []
    assert not worker_worktrees.home(ctx).exists()
    assert worker_worktrees.sweep(ctx, commit, set()) == []
    worker_worktrees.end_survivors(ctx, set())


@pytest.mark.release
def test_what_a_full_session_began_counts_in_the_next_one(workshop: Workshop, tmp_path: Path) -> None:
    workshop.ok("edit", "--max-tasks-per-session", "2", "--max-sessions", "2")
    workshop.add("Slow", "test -f slow", do=f"wait {tmp_path / 'third'}\nwrite slow x")
    for name in ("one", "two"):
        workshop.file_task(name)
    third = f"touch {tmp_path / 'third'}\nwait {tmp_path / 'end'}\nwrite third x"
    name = workshop.add("Third", "test -f third", do=third)
    workshop.file_task("last", "--depends-on", name)
    run = workshop.start("-j", "2")

    workshop.wait_for("the slow one ends", lambda: workshop.statuses()["task-001"] == "completed")
    sessions = [each["finished_attempts"] for each in workshop.state["sessions"]]
    put(tmp_path / "end", "")

    assert run.wait(90) == 9, workshop.printed
    assert sessions == [1]
    assert list(workshop.statuses().values()).count("completed") == 4

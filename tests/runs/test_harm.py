"""Agents that tear down what they stand on, and a full disk: nothing is lost, and the others go on."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.runs.workshop import Workshop, descendants
from tests.system.git.gitrepo import put, sh


def _first(workshop: Workshop) -> str:
    """Commit a file that every agent finds; return the commit."""
    put(workshop.top / "first", "done\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "First")
    return sh(workshop.top, "rev-parse", "main")


@pytest.mark.release
def test_whatever_an_agent_does_to_git_its_work_arrives_once(workshop: Workshop) -> None:
    _first(workshop)
    for number, harm in enumerate(
        (
            "git checkout -q -b elsewhere && git commit -q --allow-empty -m mine",
            "git stash -q; true",
            "git checkout -q --orphan mine",
            "git merge -q --no-commit --no-ff HEAD~0; git bisect start -q HEAD",
        )
    ):
        workshop.add(harm, f"grep -q done f{number}", do=f"sh {harm}\nwrite f{number} done")

    workshop.ends(0)

    assert (workshop.top / "first").exists()
    assert len(sh(workshop.top, "worktree", "list").splitlines()) == 1
    workshop.done_is_done()


def test_work_that_takes_away_what_it_began_with_is_kept_and_done_anew(workshop: Workshop) -> None:
    """Nobody can tell which of the commits that it has left out it meant to: the next agent is told."""
    base = _first(workshop)
    for number, harm in enumerate(
        (
            "git reset -q --hard HEAD~1 && git commit -q --allow-empty -m mine",
            # Under another name: what is committed again by the same one within a second is the same commit.
            "git commit -q --allow-empty -m mine && git -c user.name=Other rebase -q --root -f",
            "git checkout -q --orphan o && git commit -qm mine && git checkout -q --detach; git branch -qD o",
        )
    ):
        workshop.add(harm, f"grep -q done f{number}", do=f"first sh {harm}\nwrite f{number} done")

    workshop.ends(0)

    assert f"no longer has the commit {base[:12]}" in workshop.task("task-001")["error_log"][0]
    for number, task in enumerate(workshop.state["tasks"]):
        (blame,) = task["error_log"]
        assert "no longer has the commit " in blame
        rescue = f"refs/harness/rescue/{task['id']}/1"
        assert sh(workshop.top, "show", f"{rescue}:f{number}") == "done"
        assert "mine" in sh(workshop.top, "log", "--format=%s", rescue).splitlines()
    assert (workshop.top / "first").exists()
    assert workshop.git.is_ancestor(base, "refs/heads/main")
    workshop.done_is_done()
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()


@pytest.mark.release
def test_an_agent_that_deletes_its_work_tree_has_failed(workshop: Workshop) -> None:
    workshop.add("Gone", "grep -q done f", do='first sh rm -rf "$PWD"\nwrite f done')

    workshop.ends(0)

    assert workshop.task("task-001")["attempts"] == 1
    assert "work tree" in workshop.task("task-001")["error_log"][0]
    workshop.all_is_well()


def test_a_repository_that_an_agent_makes_inside_is_moved_aside_and_not_deleted(workshop: Workshop) -> None:
    harm = "sh mkdir n && git -C n init -q && echo x > n/f"
    workshop.add("Own", "false", "--max-attempts", "1", do=f"{harm}\nwrite f precious")

    said = workshop.ends(9)

    (kept,) = (workshop.home / "set-aside").glob("*/*")
    assert (kept / "n" / "f").exists()
    assert str(kept) in said.stdout
    workshop.nothing_is_left_over()


CHEAT = """
import json, os, pathlib
p = pathlib.Path(os.environ["HARNESS_STATE_ROOT"], "harness-tasks.json")
d = json.loads(p.read_text())
d["tasks"][0]["status"] = "mostly done"
d["tasks"][0]["title"] = "never mind"
p.write_text(json.dumps(d))
"""


def test_a_list_that_an_agent_has_broken_stops_the_run_and_names_the_field(workshop: Workshop) -> None:
    workshop.add("Vandal", "grep -q done f")
    cheat = workshop.top.parent / "cheat.py"
    cheat.write_text(CHEAT)

    said = workshop.ends(3, agent=f"python3 {cheat}; echo done > f; sleep 1")

    assert "tasks[0].status" in said.stderr
    listing = workshop.top / "harness-tasks.json"
    listing.write_text(listing.read_text().replace("mostly done", "in_progress"))
    workshop.ends(0)
    workshop.all_is_well()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits a process that runs")
def test_a_full_disk_stops_the_run_and_the_next_one_goes_on(workshop: Workshop, tmp_path: Path) -> None:
    """No process of the run can write more than a few bytes to a file, as where the disk is full."""
    started, go = tmp_path / "started", tmp_path / "go"
    # The list is larger than what can still be written, the lines that are printed are not.
    workshop.add("x" * 900, "grep -q done f", do=f"write f done\ntouch {started}\nonce wait {go}")
    workshop.add("y" * 900, "grep -q done g", do="write g done")
    run = workshop.start()
    workshop.wait_for("the agent starts", started.exists)

    for pid in (run.pid, *descendants(run.pid)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (2500, 2500))
    go.touch()

    assert run.wait(90) == 7, workshop.printed
    assert workshop.task("task-001")["attempts"] == 0
    workshop.ends(0)
    workshop.all_is_well()


LOGS = "$HARNESS_STATE_ROOT/.harness/logs/$HARNESS_TASK_ID"


@pytest.mark.parametrize("workers", [*for_release("1"), "2"])
def test_an_agent_that_breaks_what_its_task_needs_stops_no_other(workshop: Workshop, workers: str) -> None:
    """Nobody is blamed; after some tries the task is halted with its work kept, and the others are done."""
    workshop.add("Breaks", "grep -q done a", do=f"write a done\nsh rm -r {LOGS}; touch {LOGS}")
    workshop.file_task("b")
    workshop.file_task("c")

    said = workshop.ends(9, "-j", workers)

    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed", "task-003": "completed"}
    broken = workshop.task("task-001")
    assert (broken["attempts"], "logs/task-001" in broken["halt"]) == (0, True), broken
    assert "harness retry task-001" in broken["halt"]
    assert "space" not in said.stdout + said.stderr
    assert not [line for line in said.stdout.splitlines() if "rescue show /" in line], said.stdout
    aside = [path.read_text() for path in (workshop.home / "set-aside").rglob("a")]
    refs = sh(workshop.top, "for-each-ref", "--format=%(refname)", "refs/harness/rescue").split()
    kept = [sh(workshop.top, "show", f"{ref}:a") for ref in refs]
    assert "done" in "".join(aside + kept)

"""A run believes no check that only passes because the attempt has changed what judges."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.attempts import precheck
from harness_lib.checks.protocol import Checked
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh


def _with_scripts(workshop: Workshop) -> None:
    put(workshop.top / "check.sh", "grep -q done f\n")
    put(workshop.top / "later.sh", "grep -q done later\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "Checks")


def test_whoever_changes_the_judge_is_sent_back_once_then_waits(workshop: Workshop, tmp_path: Path) -> None:
    _with_scripts(workshop)
    workshop.add("Cheat", "sh check.sh", do="sh echo true > check.sh")
    workshop.add("Another's judge", "grep -q done g", do="write g done\nsh echo true > later.sh")
    put_back = f"test -e {tmp_path}/again && git checkout -q HEAD -- check.sh"
    cheat = f"sh {put_back} || echo true > check.sh; touch {tmp_path}/again"
    workshop.add("Puts it back", "sh check.sh && grep -q done h", do=f"{cheat}\nwrite f done\nwrite h done")
    workshop.add("Later", "sh later.sh", do="write later done")

    run = workshop.run()

    assert run.returncode == 9, run.stdout
    held = [line for line in run.stdout.splitlines() if line.startswith("      harness accept ")]
    assert "harness accept task-001 --path check.sh   or: harness return task-001 " in held[0]
    assert "harness accept task-002 --path later.sh   or: harness return task-002 " in held[1]
    assert workshop.statuses()["task-004"] == "completed"
    assert [workshop.task(f"task-00{n}")["attempts"] for n in (1, 2, 3)] == [0, 0, 0]
    assert sh(workshop.top, "show", "main:later.sh") == "grep -q done later"
    workshop.nothing_is_left_over()

    workshop.ok("accept", "task-001", "--path", "check.sh")

    assert workshop.statuses()["task-001"] == "completed"
    assert sh(workshop.top, "show", "main:check.sh") == "true"


def test_what_passed_before_any_work_is_told_from_what_was_done(workshop: Workshop, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    workshop.add("Nothing to do", "grep -q hello README.md", do="say nothing")
    workshop.add("Refactor", "grep -q hello README.md", do="write more x")
    workshop.add("Flaky", f"test ! -e {seen} || {{ rm {seen}; exit 1; }}", do=f"write f x\ntouch {seen}")
    workshop.add("Breaks it", "grep -q hello README.md", "--max-attempts", "1", do="sh rm README.md")

    run = workshop.run("--json")

    tasks = {each["id"]: each for each in json.loads(run.stdout.splitlines()[-1])["tasks"]}
    warned = {name: " ".join(each["warnings"]) for name, each in tasks.items()}
    assert "was done already" in warned["task-001"]
    assert "had passed its check before any work" in warned["task-002"]
    assert "is flaky" in warned["task-003"]
    outcomes = [workshop.task(name).get("outcome") for name in tasks]
    assert outcomes == ["already_done", None, "flaky", None]
    assert tasks["task-004"]["outcome"] == "failed"
    assert {"1.log", "1-again.log"} <= {
        log.name for log in (workshop.top / ".harness/logs/task-003").iterdir()
    }


def test_only_a_check_of_less_than_two_minutes_runs_again() -> None:
    failed = Checked("TEST_FAIL", "", "", Path(), seconds=119.9)

    assert precheck.is_worth_repeating(failed)
    assert not precheck.is_worth_repeating(failed._replace(seconds=120.0))


def test_a_task_whose_check_passes_already_needs_no_agent(workshop: Workshop) -> None:
    workshop.add("Nothing to do", "grep -q hello README.md")

    run = workshop.run("--skip-green", agent="false")

    assert run.returncode == 0, run.stdout
    assert workshop.task("task-001")["outcome"] == "already_done"


def test_no_precheck_asks_nothing_before_the_work(workshop: Workshop, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    workshop.add("One", f"echo x >> {runs}; grep -q done f", do="write f done")

    workshop.ends(0, "--no-precheck")
    assert runs.read_text() == "x\n"


@pytest.mark.release
def test_a_task_costs_a_bounded_number_of_checks(workshop: Workshop, tmp_path: Path) -> None:
    """One more where no judge changes; before and after its rework at most three more where one does."""
    _with_scripts(workshop)
    runs = {name: tmp_path / name for name in ("plain", "old", "new", "fresh")}
    check = {name: f"echo x >> {path}; " for name, path in runs.items()}
    workshop.add("Plain", f"{check['plain']}grep -q done f", do="write f done")
    edits = "sh echo '# more' >> check.sh\nwrite f done\nwrite old done"
    workshop.add("An old judge", f"{check['old']}sh check.sh && grep -q done old", do=edits)
    vacuous = "write new done\nsh mkdir -p tests; echo true > tests/new.sh"
    workshop.add("A new judge", f"{check['new']}sh tests/new.sh", do=vacuous)
    bites = "write fresh done\nsh mkdir -p tests; echo grep done fresh > tests/fresh.sh"
    workshop.add("A new judge that bites", f"{check['fresh']}sh tests/fresh.sh", do=bites)

    run = workshop.run("--json")

    assert run.returncode == 0, run.stdout
    counted = {name: len(path.read_text().splitlines()) for name, path in runs.items()}
    # The vacuous one is handed in twice: its tests are tried without it once.
    assert counted == {"plain": 2, "old": 3, "new": 4, "fresh": 3}
    look_at = workshop.task("task-003")["look_at"]
    assert len(look_at) == 1, look_at
    assert "adds tests that pass without its work: tests/new.sh" in look_at[0]
    assert [workshop.task(name)["attempts"] for name in workshop.statuses()] == [0, 0, 0, 0]

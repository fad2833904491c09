"""What the user in a second terminal sees and changes while a run goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness_lib.system.processes import process
from tests.runs.conftest import Make
from tests.runs.workshop import Workshop, descendants
from tests.terminal.pseudo_terminal import ESCAPE, read_to_end, read_until, typed


@pytest.fixture
def go(workshop: Workshop, tmp_path: Path) -> Path:
    """Start a run whose agent has spent something and waits; return the file that lets it end."""
    go = tmp_path / "go"
    used = '{"tokens": 1200, "cost_usd": 0.5, "action": "think"}'
    workshop.add("Slow", "grep -q done f", do=f"say {used}\nsay nearly there\nwait {go}\nwrite f done")
    workshop.file_task("next")
    run = workshop.start("--max-cost", "7")

    def has_spent() -> bool:
        assert run.poll() is None, workshop.printed
        return "0.50 of" in workshop("budget").text

    workshop.wait_for("it has spent", has_spent)
    return go


def end(workshop: Workshop, go: Path) -> int:
    go.touch()
    return workshop.runs[0].wait(60)


def test_a_second_terminal_sees_what_goes_on_and_changes_its_limits(workshop: Workshop, go: Path) -> None:
    pid = workshop.runs[0].pid
    said = workshop.ok("budget")
    (run,) = said["runs"]
    assert (said["limits"], run["pid"]) == ({"max_cost": 7.0}, pid)
    assert (run["spent"]["cost"], run["spent"]["tokens"]) == (0.5, 1200)
    assert "cost: $0.50 of $7.00" in said["message"]

    status = workshop("status").out
    (shown,) = [line for line in status.splitlines() if line.startswith("run: ")]
    assert "cost: $0.50 of $7.00, tokens: 1,200" in shown
    assert shown.endswith(f"; process {pid}")
    assert "[1] task-001 Slow: works, " in status
    assert "$0.50, 1,200 tokens | nearly there" in status
    assert status.rstrip().endswith("next: harness status --watch")
    (run,) = workshop.ok("status")["runs"]
    (worker,) = run["workers"]
    assert (run["pid"], worker["task"], worker["step"]) == (pid, "task-001", "works")

    _limits_that_nobody_can_read(workshop, pid)
    workshop.ok("note", "task-001", "Mind the gap.")
    # Zero lifts a limit, and one that is raised before the end lets the run go on.
    assert workshop.ok("budget", "--max-cost", "0")["limits"] == {}
    workshop.ok("budget", "--max-cost", "0.4")
    workshop.wait_for("the limit is met", lambda: "finishing what runs" in workshop.printed)
    workshop.ok("budget", "--max-cost", "5")
    # An agent, or a `git clean` of its, takes `.harness/`: what the user has typed still holds.
    shutil.rmtree(workshop.top / ".harness")
    workshop.wait_for("it shows itself again", lambda: workshop("budget").code == 0)
    assert workshop.ok("budget")["limits"] == {"max_cost": 5.0}

    assert end(workshop, go) == 0, workshop.printed
    assert workshop.statuses() == {"task-001": "completed", "task-002": "completed"}
    noted = workshop.task("task-001")
    assert (noted["notes"], noted["attempts"]) == (["Mind the gap."], 0)
    assert "the worker has died" not in workshop.printed
    assert workshop.ok("status")["runs"] == []


def _limits_that_nobody_can_read(workshop: Workshop, pid: int) -> None:
    """Ask for limits in torn files: each is said, and nothing is changed."""
    asked = workshop.top / f".harness/budget-{pid}.json"
    for torn in ('{"max_cost": 0', '{"max_cost": -1}', "[]"):
        asked.write_text(torn)
        workshop.wait_for("it is taken", lambda: not asked.exists())
    assert workshop.ok("budget")["limits"] == {"max_cost": 7.0}
    kept = "limits of this run stay as they are"
    workshop.wait_for("it is said", lambda: workshop.printed.count(kept) == 3)


def test_limits_that_are_set_meanwhile_end_the_attempt_and_the_run(workshop: Workshop, go: Path) -> None:
    limits = workshop.ok("budget", "--task-tokens", "1000", "--max-tasks", "1")["limits"]

    assert limits == {"max_cost": 7.0, "task_tokens": 1000, "max_tasks": 1}
    assert workshop.runs[0].wait(60) == 9
    assert "tokens: 1,200 of 1,000" in workshop.task("task-001")["error_log"][0]
    assert workshop.statuses() == {"task-001": "failed", "task-002": "pending"}
    assert "attempts: 1 of 1" in workshop.printed
    assert not go.exists()


def test_what_is_no_amount_is_refused_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("one")
    for amount in ("-1", "nan", "inf"):
        workshop.ends(2, f"--max-cost={amount}")
    assert workshop.state["session_count"] == 0


def test_a_run_that_was_killed_is_not_shown_and_can_be_ended(workshop: Workshop, go: Path) -> None:
    run = workshop.runs[0]
    below = descendants(run.pid)
    run.kill()
    run.wait()

    error = workshop("budget", "--json").json["error"]
    assert (error["kind"], "harness run" in error["hint"]) == ("USAGE", True)
    assert "run: " not in workshop("status").out
    later = workshop.ok("status")
    assert later["next"] == "harness run"
    (session,) = later["sessions"]
    assert session.endswith("its run was killed; this goes on with its work: harness run")
    go.touch()
    workshop.wait_for("its workers are gone", lambda: not any(map(process.find, below)))
    assert workshop.ok("status")["next"] == "harness run"
    workshop.ok("stop", "--session", "1")
    assert workshop.state["sessions"] == []


@pytest.mark.release
def test_watching_shows_them_and_ends_with_the_run(workshop: Workshop, go: Path) -> None:
    """The list is done before the final checks are: a watcher stays until the run has ended."""
    with typed(workshop.top, "status", "--watch") as (watcher, ours):
        seen = ESCAPE.sub("", read_until(ours, "nearly there"))
        assert "task-001 Slow" in seen
        assert end(workshop, go) == 0
        rest = read_to_end(ours)
        assert watcher.wait() == 0
    assert "2 of 2 completed" in rest
    assert "Nothing is left to do." in rest


@pytest.mark.release
def test_runs_of_one_list_share_limits_and_count_for_themselves(make_workshop: Make, tmp_path: Path) -> None:
    workshop = make_workshop(mode="concurrent")
    go = tmp_path / "go"
    for number in range(2):
        workshop.add(f"Slow {number}", f"grep -q done f{number}", do=f"wait {go}\nwrite f{number} done")

    def shown() -> int:
        return len(workshop.ok("status")["runs"])

    workshop.start("--max-cost", "7")
    workshop.wait_for("the first run", lambda: shown() == 1)
    workshop.start("--max-tasks", "5")
    workshop.wait_for("the second run", lambda: shown() == 2)
    said = workshop.ok("budget")
    limits: list[dict[str, float]] = [{"max_cost": 7.0}, {"max_tasks": 5}]
    assert {run["pid"]: run["limits"] for run in said["runs"]} == dict(
        zip([run.pid for run in workshop.runs], limits, strict=True)
    )
    workshop.ok("budget", "--task-cost", "3")
    assert [run["limits"] for run in workshop.ok("budget")["runs"]] == [
        {**each, "task_cost": 3.0} for each in limits
    ]
    go.touch()
    assert [run.wait(60) for run in workshop.runs] == [0, 0], workshop.printed

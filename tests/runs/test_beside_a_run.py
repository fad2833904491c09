"""What a person in a second terminal sees and changes while a run goes on."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal import ESCAPE, read_to_end, read_until, typed
from tests.runs.conftest import Make
from tests.runs.workshop import Workshop


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
        return "0.50 of" in workshop.harness("budget").stdout

    workshop.wait_for("it has spent", has_spent)
    return go


def end(workshop: Workshop, go: Path) -> subprocess.Popen[str]:
    go.touch()
    run = workshop.runs[0]
    run.wait(60)
    return run


def test_budget_shows_what_is_spent_of_which_limit(workshop: Workshop, go: Path) -> None:
    said = workshop.ok("budget")
    assert said["limits"] == {"max_cost": 7.0}
    (run,) = said["runs"]
    assert run["pid"] == workshop.runs[0].pid
    assert (run["spent"]["cost"], run["spent"]["tokens"]) == (0.5, 1200)
    assert "cost: $0.50 of $7.00" in said["message"]
    assert end(workshop, go).returncode == 0


def test_a_limit_that_is_set_meanwhile_ends_the_run_and_others_stay(workshop: Workshop, go: Path) -> None:
    assert workshop.ok("budget", "--max-tasks", "1")["limits"] == {"max_cost": 7.0, "max_tasks": 1}
    assert end(workshop, go).returncode == 9
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending"}
    assert "attempts: 1 of 1" in workshop.printed


def test_a_limit_that_is_raised_before_the_end_lets_it_go_on(workshop: Workshop, go: Path) -> None:
    workshop.ok("budget", "--max-cost", "0.4")
    workshop.wait_for("the limit is met", lambda: "finishing what runs" in workshop.printed)
    workshop.ok("budget", "--max-cost", "5")

    assert end(workshop, go).returncode == 0, workshop.printed

    assert workshop.statuses() == {"task-001": "completed", "task-002": "completed"}


def test_a_limit_of_the_task_is_heard_by_its_worker(workshop: Workshop, go: Path) -> None:
    workshop.ok("budget", "--task-tokens", "1000")
    workshop.wait_for("the attempt ends", lambda: workshop.task("task-001")["attempts"])
    assert "tokens: 1,200 of 1,000" in workshop.task("task-001")["error_log"][0]
    workshop.ok("budget", "--task-tokens", "0")
    assert end(workshop, go).returncode == 0


def test_zero_lifts_a_limit(workshop: Workshop, go: Path) -> None:
    assert workshop.ok("budget", "--max-cost", "0")["limits"] == {}
    assert end(workshop, go).returncode == 0


def test_limits_outlive_the_files_of_a_run(workshop: Workshop, go: Path) -> None:
    """An agent, or a `git clean` of its, takes `.harness/`: what a person has typed still holds."""
    workshop.ok("budget", "--max-cost", "0.4")
    shutil.rmtree(workshop.top / ".harness")
    workshop.wait_for("it shows itself again", lambda: workshop.harness("budget").returncode == 0)
    assert workshop.ok("budget")["limits"] == {"max_cost": 0.4}

    assert end(workshop, go).returncode == 9, workshop.printed
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending"}


def test_other_limits_that_nobody_can_read_change_nothing_and_are_said(workshop: Workshop, go: Path) -> None:
    pid = workshop.runs[0].pid
    for torn in ('{"max_cost": 0', '{"max_cost": -1}', "[]"):
        (workshop.top / f".harness/budget-{pid}.json").write_text(torn)
        workshop.wait_for("it is taken", lambda: not (workshop.top / f".harness/budget-{pid}.json").exists())
    assert workshop.ok("budget")["limits"] == {"max_cost": 7.0}
    workshop.wait_for(
        "it is said", lambda: workshop.printed.count("limits of this run stay as they are") == 3
    )
    assert end(workshop, go).returncode == 0


@pytest.mark.parametrize("amount", ["-1", "nan", "inf"])
def test_what_is_no_amount_is_refused_before_anything_begins(workshop: Workshop, amount: str) -> None:
    workshop.file_task("one")
    said = workshop.run(f"--max-cost={amount}")
    assert said.returncode == 2
    assert workshop.state["session_count"] == 0


def test_without_a_run_there_is_no_budget_also_after_one_was_killed(workshop: Workshop, go: Path) -> None:
    workshop.runs[0].kill()
    workshop.runs[0].wait()
    said = workshop.harness("budget", "--json")
    assert (said.returncode, json.loads(said.stdout)["error"]["kind"]) == (2, "USAGE")
    assert "harness run" in json.loads(said.stdout)["error"]["hint"]
    go.touch()


def test_status_shows_the_workers_while_a_run_goes_on(workshop: Workshop, go: Path) -> None:
    said = workshop.harness("status").stdout
    pid = workshop.runs[0].pid
    assert f"run: process {pid}; cost: $0.50 of $7.00, tokens: 1,200" in said
    assert "[1] task-001 Slow: works, " in said
    assert "$0.50, 1,200 tokens | nearly there" in said
    assert said.rstrip().endswith("next: harness status --watch")
    (run,) = workshop.ok("status")["runs"]
    (worker,) = run["workers"]
    assert (run["pid"], worker["task"], worker["step"]) == (pid, "task-001", "works")
    assert end(workshop, go).returncode == 0
    assert workshop.ok("status")["runs"] == []


def test_watching_shows_them_and_ends_with_the_run(workshop: Workshop, go: Path) -> None:
    """The list is done before the final checks are: a watcher stays until the run has ended."""
    with typed(workshop.top, "status", "--watch") as (process, ours):
        seen = ESCAPE.sub("", read_until(ours, "nearly there"))
        assert "task-001 Slow" in seen
        assert end(workshop, go).returncode == 0
        rest = read_to_end(ours)
        assert process.wait() == 0
    assert "2 of 2 completed" in rest
    assert "Nothing is left to do." in rest


def test_a_run_that_was_killed_is_not_shown(workshop: Workshop, go: Path) -> None:
    workshop.runs[0].kill()
    workshop.runs[0].wait()
    assert "run: process" not in workshop.harness("status").stdout
    go.touch()


def test_a_note_on_what_is_under_way_stays_and_disturbs_nobody(workshop: Workshop, go: Path) -> None:
    workshop.ok("note", "task-001", "Mind the gap.")
    assert end(workshop, go).returncode == 0
    noted = workshop.task("task-001")
    assert (noted["notes"], noted["attempts"]) == (["Mind the gap."], 0)
    assert "the worker has died" not in workshop.printed


def test_runs_of_one_list_share_their_limits_and_each_counts_for_itself(
    make_workshop: Make, tmp_path: Path
) -> None:
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


def test_a_run_is_ended_as_the_one_that_is_held_up_is_told(workshop: Workshop, go: Path) -> None:
    """Not by closing its session behind its back."""
    run, hint = workshop.runs[0], ""
    for argv in (["start"], ["stop", "--session", "1"], ["edit", "--mode", "concurrent"]):
        held = workshop.harness(*argv)
        assert held.returncode == 5, held.stdout + held.stderr
        hint = held.stderr
        assert f": Ctrl-C in its terminal, or kill -INT {run.pid}\n" in hint
        assert "harness stop --session" not in hint
    assert [session["number"] for session in workshop.state["sessions"]] == [1]

    subprocess.run(hint.rpartition(" or ")[2].split(), check=True)
    workshop.wait_for("the run hears it", lambda: "starting nothing new" in workshop.printed)
    assert end(workshop, go).returncode == 9
    assert workshop.state["sessions"] == []


def test_the_session_of_a_run_that_was_killed_can_be_ended(workshop: Workshop, go: Path) -> None:
    workshop.runs[0].kill()
    workshop.runs[0].wait()
    go.touch()
    said = workshop.harness("stop", "--session", "1")
    assert said.returncode == 0, said.stderr
    assert workshop.state["sessions"] == []

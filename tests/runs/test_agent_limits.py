"""Agents that would never end, cost too much, or meet a limit of their provider: stopped, or waited for."""

from __future__ import annotations

import json
import signal
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness_lib.state import schema
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh

SOON = 3.0


def test_an_agent_that_prints_without_end_is_stopped(workshop: Workshop) -> None:
    workshop.add("Loud", "test -f f", "--max-attempts", "1")

    said = workshop.run(agent="yes", HARNESS_LOG_LIMIT_BYTES="1000000")

    assert said.returncode == 9
    assert "[TIMEOUT] the agent printed without end" in workshop.task("task-001")["error_log"][0]


def test_an_agent_that_is_silent_for_too_long_is_stopped(workshop: Workshop) -> None:
    workshop.add("Quiet", "test -f f", "--max-attempts", "1", do="write g x\nsleep 600")

    said = workshop.run("--silence", "0.02")

    assert said.returncode == 9
    assert "[TIMEOUT] the agent has said nothing" in workshop.task("task-001")["error_log"][0]
    workshop.failures_are_kept()
    workshop.nothing_is_left_over()


def test_an_agent_that_goes_round_in_circles_is_stopped(workshop: Workshop) -> None:
    workshop.add("Round", "test -f f", "--max-attempts", "1")
    loop = 'while :; do echo \'{"action": "ls"}\'; sleep 0.02; done'

    said = workshop.run(agent=loop)

    assert said.returncode == 9
    assert "[TIMEOUT] the agent repeats itself" in workshop.task("task-001")["error_log"][0]


def test_an_agent_that_costs_too_much_is_stopped(workshop: Workshop) -> None:
    workshop.add("Dear", "test -f f", "--max-attempts", "1")

    said = workshop.run("--task-cost", "1", agent="echo '{\"cost_usd\": 1.5}'; sleep 600")

    assert said.returncode == 9
    assert "[TASK_EXEC] the limit of one task is reached (cost: $1.50 of $1.00)" in str(workshop.state)


def test_a_budget_of_the_run_ends_it_after_what_runs(workshop: Workshop) -> None:
    for name in ("one", "two", "three"):
        workshop.file_task(name)

    said = workshop.run("--max-cost", "1", "--json", agent="echo '{\"cost_usd\": 1.5}'; echo done > one")

    answer = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, answer["stop"]) == (9, {"reason": "limit"})
    assert schema.reply_problems(answer) == []
    assert answer["spent"]["cost_usd"] == pytest.approx(1.5)
    sentence = "A limit of this run is reached (cost: $1.50 of $1.00). Go on with a higher one:"
    assert answer["message"].splitlines()[0] == f"{sentence} harness run --help"
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending", "task-003": "pending"}


def test_a_limit_that_the_last_task_reaches_ends_nothing(workshop: Workshop) -> None:
    workshop.file_task("one")

    said = workshop.run("--max-cost", "1", agent="echo '{\"cost_usd\": 1.5}'; echo done > one")

    assert said.returncode == 0, said.stdout + said.stderr
    assert "every check runs once more" in said.stdout
    assert "run=done cost_usd=1.50" in workshop.harness("log").stdout


def test_a_usage_limit_is_waited_out_and_costs_no_attempt(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("Limited", "grep -q done f")
    resets = (datetime.now(timezone.utc) + timedelta(seconds=SOON)).isoformat()
    seen = tmp_path / "seen"
    agent = (
        f"if [ -f {seen} ]; then echo done >> f; else touch {seen}; echo half > f; "
        f"echo '{json.dumps({'limit_resets_at': resets})}'; exit 1; fi"
    )
    began = time.monotonic()

    said = workshop.run(agent=agent)

    assert said.returncode == 0, said.stdout + said.stderr
    assert time.monotonic() - began > SOON
    assert workshop.task("task-001")["attempts"] == 0
    assert (workshop.top / "f").read_text().split() == ["half", "done"]


@pytest.mark.parametrize("how", ["cost", "time", "ctrl-c"])
def test_nobody_waits_for_a_usage_limit_in_a_run_that_ends(
    workshop: Workshop, tmp_path: Path, how: str
) -> None:
    workshop.add("Limited", "grep -q done f")
    seen = tmp_path / "seen"
    resets = (datetime.now(timezone.utc) + timedelta(hours=3)).isoformat()
    agent = (
        f"echo x >> {seen}; echo half > f; "
        f"echo '{json.dumps({'cost_usd': 0.3, 'limit_resets_at': resets})}'; exit 1"
    )
    most = {"cost": ("--max-cost", "0.05"), "time": ("--max-hours", "0.002"), "ctrl-c": ()}[how]

    run = workshop.start("--no-final-check", *most, agent=agent)
    if how == "ctrl-c":
        workshop.wait_for("the waiting", lambda: "limit, goes on at" in workshop.printed)
        run.send_signal(signal.SIGINT)

    assert run.wait(90) == 9, workshop.printed
    assert seen.read_text() == "x\n"
    why = "the run was stopped" if how == "ctrl-c" else "a limit of the run was reached"
    assert f"task-001 goes back: {why} while its agent waited" in workshop.printed
    task = workshop.task("task-001")
    assert (task["status"], task["attempts"]) == ("pending", 0)
    assert sh(workshop.top, "show", f"{task['handback']['rescue']}:f") == "half"
    workshop.nothing_is_left_over()


def test_trouble_of_the_providers_is_tried_again(workshop: Workshop, tmp_path: Path) -> None:
    workshop.add("Shaky", "grep -q done f")
    seen = tmp_path / "seen"
    trouble = json.dumps({"transient": "529 overloaded"})
    agent = f"if [ -f {seen} ]; then echo done >> f; else touch {seen}; echo '{trouble}'; exit 1; fi"

    said = workshop.run(agent=agent)

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    assert "529 overloaded" in said.stdout


def test_an_agent_that_stops_itself_at_its_cost_is_followed_by_no_other(workshop: Workshop) -> None:
    workshop.add("Dear", "test -f f", "--max-attempts", "1")

    said = workshop.run("--task-cost", "1", agent="echo '{\"cost_usd\": 1.5}'; exit 1")

    assert said.returncode == 9, said.stdout + said.stderr
    assert "[TASK_EXEC] the limit of one task is reached (cost: $1.50 of $1.00)" in str(workshop.state)
    assert "pauses" not in said.stdout

"""Agents that are not installed, not logged in, or cannot start: named, and it costs no attempt."""

from __future__ import annotations

import json

import pytest

from tests.runs.workshop import Workshop


def test_an_agent_that_is_not_installed_is_named_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.harness("run", "--agent", "claude", PATH="/usr/bin:/bin")

    assert said.returncode == 7
    assert "there is no 'claude' on the PATH" in said.stderr
    assert workshop.state["session_count"] == 0


def test_an_agent_that_cannot_start_ends_the_run_and_costs_nothing(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.run(agent="no-such-agent --yes")

    assert said.returncode == 7, said.stdout + said.stderr
    assert "no-such-agent" in said.stderr
    assert (workshop.statuses(), workshop.task("task-001")["attempts"]) == ({"task-001": "pending"}, 0)
    workshop.nothing_is_left_over()


def test_an_agent_that_cannot_start_for_one_task_does_not_keep_the_others(workshop: Workshop) -> None:
    workshop.add("Too long", "test -f f")
    workshop.file_task("g")

    said = workshop.run(
        agent='[ "$HARNESS_TASK_ID" = task-002 ] || { echo too long; exit 1; }; echo done > g'
    )

    assert said.returncode == 9
    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed"}
    assert workshop.task("task-001")["attempts"] == 0
    status = workshop.harness("status").stdout
    assert "the agent cannot start: the agent ended with 1: too long" in status
    assert "harness retry task-001" in status
    workshop.nothing_is_left_over()


@pytest.mark.parametrize(
    "sign",
    [
        """echo '{"cost_usd": 0.10}'""",
        "echo x >> made; git add made; git commit -qm Made",
    ],
)
def test_an_agent_that_has_done_something_could_start(workshop: Workshop, sign: str) -> None:
    workshop.add("Dies", "test -f f", "--max-attempts", "1")

    said = workshop.run(agent=f"{sign}; exit 1")

    assert said.returncode == 9, said.stdout + said.stderr
    assert "cannot start" not in said.stdout + said.stderr
    assert workshop.statuses() == {"task-001": "failed"}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_agent_that_starts_for_no_task_ends_the_run_and_halts_none(
    workshop: Workshop, workers: str
) -> None:
    workshop.file_task("f")
    workshop.file_task("g")

    said = workshop.run("-j", workers, agent="no-such-agent --yes")

    assert said.returncode == 7, said.stdout + said.stderr
    assert [task.get("halt") for task in workshop.state["tasks"]] == [None, None]
    assert "ERROR [ENV_SETUP] the run ended: the agent cannot start" in workshop.harness("status").stdout
    workshop.ok("retry", "task-001")


def test_an_agent_that_is_not_logged_in_ends_the_run_and_status_says_what_it_lacked(
    workshop: Workshop,
) -> None:
    workshop.file_task("f")

    said = workshop.run(agent=f"echo '{json.dumps({'login': 'no key'})}'; exit 1")

    assert said.returncode == 7
    assert "no key" in said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    workshop.nothing_is_left_over()
    later = workshop.ok("status")
    assert later["next"] == "harness run"
    (act,) = later["halts"]
    assert act.startswith("the last run ended: ")
    assert "no key" in act
    assert act.endswith("; then: harness run")
    workshop.ok("start")
    workshop.ok("stop", "--session", str(workshop.state["sessions"][0]["number"]))
    later = workshop.ok("status")
    assert (later["next"], later["halts"]) == ("harness start", [])

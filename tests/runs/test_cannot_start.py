"""Agents that are not installed, not logged in, or cannot start: named, and it costs no attempt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.runs.workshop import HURRIED, Workshop


def test_an_agent_that_is_not_installed_is_named_before_anything_begins(workshop: Workshop) -> None:
    workshop.file_task("f")

    said = workshop.harness("run", "--agent", "claude", PATH="/usr/bin:/bin")

    assert said.returncode == 7
    assert "there is no 'claude' on the PATH" in said.stderr
    assert workshop.state["session_count"] == 0


def test_an_agent_that_cannot_start_ends_the_run_at_no_cost(workshop: Workshop, tmp_path: Path) -> None:
    """With a report as any other run, on which a command is told once."""
    workshop.file_task("f")
    workshop.file_task("g")
    news = tmp_path / "news"

    told = ("--notify", f'echo "$HARNESS_EVENT" >> {news}')
    said = workshop.ends(7, *told, agent="no-such-agent --yes", **HURRIED)

    assert "The user must act first. the agent cannot start" in said.stderr
    assert "no-such-agent" in said.stderr
    assert "2 tasks: 0 completed, 2 pending" in said.stderr
    assert [(task["attempts"], task.get("halt")) for task in workshop.state["tasks"]] == [(0, None)] * 2
    assert "ERROR [ENV_SETUP] the run ended: the agent cannot start" in workshop("status").out
    workshop.nothing_is_left_over()
    workshop.wait_for("the news", news.exists)
    workshop.ok("retry", "task-001")

    said = workshop.run("-j", "2", "--json", agent="no-such-agent --yes", **HURRIED)

    assert (said.returncode, json.loads(said.stdout.splitlines()[-1])["tasks"]) == (7, [])
    assert [task.get("halt") for task in workshop.state["tasks"]] == [None, None]
    assert news.read_text() == "stuck\n"


@pytest.mark.release
def test_an_agent_that_cannot_start_for_one_task_does_not_keep_the_others(workshop: Workshop) -> None:
    workshop.add("Too long", "test -f f")
    workshop.file_task("g")
    agent = '[ "$HARNESS_TASK_ID" = task-002 ] || { echo too long; exit 1; }; echo done > g'

    said = workshop.run(agent=agent, **HURRIED)

    assert said.returncode == 9
    assert workshop.statuses() == {"task-001": "pending", "task-002": "completed"}
    assert workshop.task("task-001")["attempts"] == 0
    status = workshop("status").out
    assert "the agent cannot start: the agent ended with 1: too long" in status
    assert "harness retry task-001" in status
    workshop.nothing_is_left_over()


def test_an_agent_that_is_not_logged_in_ends_the_run_and_is_named(workshop: Workshop) -> None:
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

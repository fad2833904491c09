"""Agents that do nothing or end as they like, and tasks that nothing judges: said plainly, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workshop import HURRIED, Workshop


@pytest.mark.release
def test_agents_end_as_they_like_and_the_check_decides(workshop: Workshop, tmp_path: Path) -> None:
    log = tmp_path / "log"
    any_code = workshop.add("Any code", "grep -q done f", do=f"sh echo x >> {log}\nwrite f done\nexit 3")
    daemon = workshop.add("Daemon", "grep -q done g", do="sh setsid sleep 600 & \nwrite g done")
    idle = workshop.add("Something", "test -f h", "--max-attempts", "2")
    unjudged = str(workshop.ok("add", "No check")["task"]["id"])
    # What a check leaves is taken back before the next agent.
    again = workshop.add(
        "Two lives",
        "touch trace; echo spoilt > README.md; grep -q done i",
        do="write i half\nonce exit 3\nsh test ! -f trace\nwrite i done",
    )

    workshop.ends(9, **HURRIED)

    assert log.read_text() == "x\n"
    assert workshop.statuses() == {
        any_code: "completed",
        daemon: "completed",
        idle: "failed",
        unjudged: "pending",
        again: "completed",
    }
    assert (workshop.task(idle)["attempts"], workshop.task(again)["attempts"]) == (2, 0)
    assert "Missing validation.command" in workshop.task(unjudged)["halt"]
    assert (workshop.top / "README.md").read_text() == "hello\n"
    workshop.nothing_is_left_over()

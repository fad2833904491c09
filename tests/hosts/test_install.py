"""Installed by the real `skills` CLI, typed `/harness run`: Claude Code takes the list to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hosts.agents import DONE, follows_the_page

if TYPE_CHECKING:
    from tests.hosts.claude import Claude
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model

# The second task is done wrong at first.
WORK = {
    "task-001": ["echo one > one"],
    "task-002": ["echo wrong", "cat one > two"],
    "task-003": ["touch three"],
}


def three_tasks(machine: Machine) -> None:
    """Make a list in which each task waits for the one before."""
    machine.add("Make one", "--validate", "test -f one")
    machine.add("Make two", "--validate", "cmp one two", "--depends-on", "task-001")
    machine.add("Make three", "--validate", "test -f three", "--depends-on", "task-002")


@pytest.mark.parametrize("mode", ["symlink", "copy"])
@pytest.mark.parametrize("scope", ["project", "global"])
def test_claude_takes_the_list_to_its_end(
    claude: Claude, model: Model, machine: Machine, published: Path, scope: str, mode: str
) -> None:
    """Three tasks, a dependency and a failing attempt; each completed task is one commit."""
    flags = [*(["-g"] if scope == "global" else []), *(["--copy"] if mode == "copy" else [])]
    machine.skills_add(published, *flags)
    claude.trust(machine.project)
    three_tasks(machine)
    model.play(follows_the_page(WORK))

    told = claude("/harness run")

    assert (told.code, told.result) == (0, DONE)
    assert machine.statuses == ["completed"] * 3
    assert "ERROR [task-002] [TEST_FAIL]" in machine.log
    assert machine.subjects[:3] == ["[task-003] Make three", "[task-002] Make two", "[task-001] Make one"]

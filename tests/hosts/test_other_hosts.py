"""The skill where no slash command loads it: agents in Gemini and Copilot ask their client for the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.agents import DONE, follows_the_page, loads_the_page
from tests.hosts.chores import WORK, one_task
from tests.hosts.copilot import Copilot
from tests.hosts.gemini import Gemini
from tests.hosts.machine import Machine
from tests.hosts.model import Model


@pytest.mark.release
def test_gemini_does_the_whole_list(gemini: Gemini, model: Model, machine: Machine, published: Path) -> None:
    """Installed by the real `skills` CLI, the page alone is enough for the whole list."""
    machine.skills_add(published, agents=["gemini-cli"])
    one_task(machine)
    model.play(loads_the_page("activate_skill", "name", follows_the_page(WORK)))

    assert DONE in gemini("/harness run").check().out
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_copilot_does_it_all(copilot: Copilot, model: Model, machine: Machine, published: Path) -> None:
    """As above."""
    machine.skills_add(published, agents=["github-copilot"])
    one_task(machine)
    model.play(loads_the_page("skill", "skill", follows_the_page(WORK)))

    assert DONE in copilot("/harness run").check().out
    assert machine.statuses == ["completed"]

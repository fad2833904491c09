"""Codex works on a list: the skill by the real `skills` CLI, `$harness run`, and hooks that hold it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hosts.agents import (
    DONE,
    follows_the_page,
    opens_the_page,
    stops_after_each_task,
)
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks
from tests.hosts.codex import Codex
from tests.hosts.machine import Machine
from tests.hosts.model import Model


@pytest.fixture(autouse=True)
def _skill(codex: Codex, published: Path) -> None:
    """Have the skill in the project, and the hooks."""
    codex.take_skill(published)


@pytest.mark.release
def test_the_typed_command_brings_the_page(codex: Codex, model: Model, machine: Machine) -> None:
    """`$harness:harness run` puts the whole page into the conversation, from which the list gets done.

    Of the hooks Codex has nothing to say but that they were not looked at.
    """
    one_task(machine)
    model.play(follows_the_page(WORK))

    ran = codex("$harness:harness run").check()

    assert "## The loop" in model.requests[0].said_by("user")
    assert DONE in ran.out
    assert [line for line in ran.out.splitlines() if "hooks.json" in line] == []
    assert _held(model) == 0
    assert machine.statuses == ["completed"]


# The whole name brings the page in test_codex_sandbox.py.
@pytest.mark.release
def test_the_short_name_is_enough(codex: Codex, model: Model, machine: Machine) -> None:
    """`$harness run` names the skill, whose page the agent reads itself; it is held to the end."""
    three_tasks(machine)
    model.play(opens_the_page(stops_after_each_task(WORK)))

    codex("$harness run").check()

    assert_all_done(machine)
    # After the start, the first task, the failed attempt and the second task.
    assert _held(model) == 4


def _held(model: Model) -> int:
    """Return how often the agent was sent back: a hook's prompt stands at the end of a request."""
    return sum("<hook_prompt" in request.last for request in model.requests)

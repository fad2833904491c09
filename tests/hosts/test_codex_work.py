"""Codex works on a list: the skill by the real `skills` CLI, `$harness run`, hooks that hold it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.hosts.agents import DONE, follows_the_page
from tests.hosts.chores import WORK, assert_all_done, three_tasks

if TYPE_CHECKING:
    from tests.hosts.codex import Codex
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model


def test_codex_takes_the_list_to_its_end(
    codex: Codex, model: Model, machine: Machine, published: Path
) -> None:
    """Three tasks, a dependency and a failing attempt, from a skill that substitutes nothing."""
    machine.skills_add(published)
    three_tasks(machine)
    model.play(follows_the_page(WORK))

    ran = codex("$harness run").check()

    assert DONE in ran.out
    assert_all_done(machine)

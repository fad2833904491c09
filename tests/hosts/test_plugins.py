"""The plugin route: from the marketplace in this repository, in both clients that have one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hosts.agents import TIRED, stops_after_each_task
from tests.hosts.chores import WORK, assert_all_done, three_tasks

if TYPE_CHECKING:
    from tests.hosts.claude import Claude
    from tests.hosts.codex import Codex
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model


@pytest.mark.parametrize("way", ["marketplace", "--plugin-dir"])
def test_claude_code_takes_the_plugin(
    claude: Claude, model: Model, machine: Machine, published: Path, way: str
) -> None:
    """Installed as a plugin, `/harness run` is known and the hooks fire, each once."""
    flags = []
    if way == "marketplace":
        claude.plugin("marketplace", "add", str(published))
        claude.plugin("install", "harness@harness")
    else:
        flags = [way, str(published)]
    three_tasks(machine)
    model.play(stops_after_each_task(WORK))

    told = claude("/harness run", *flags)

    assert (told.result, len(told.blocks()), len(told.hooks("Stop"))) == (TIRED, 4, 5)
    assert_all_done(machine)


def test_claude_code_finds_the_plugin_valid(claude: Claude, published: Path) -> None:
    """`claude plugin validate` has nothing against the manifest, the hooks and the page."""
    assert "error" not in claude.plugin("validate", str(published)).out.lower()


def test_codex_takes_the_plugin(codex: Codex, model: Model, machine: Machine, published: Path) -> None:
    """Installed as a plugin, `$harness run` is known and the hooks hold the agent to the end."""
    codex.plugin("marketplace", "add", str(published))
    codex.plugin("add", "harness@harness")
    three_tasks(machine)
    model.play(stops_after_each_task(WORK))

    codex("$harness run").check()

    assert_all_done(machine)

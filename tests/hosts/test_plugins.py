"""The plugin route: from the marketplace in this repository, in both clients that have one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT
from tests.hosts.agents import TIRED, listed_page, stops_after_each_task
from tests.hosts.chores import WORK, one_task
from tests.hosts.talk import Request, Script

if TYPE_CHECKING:
    from tests.hosts.claude import Claude
    from tests.hosts.codex import Codex
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model


@pytest.mark.release
@pytest.mark.parametrize("way", ["marketplace", pytest.param("--plugin-dir", marks=pytest.mark.release)])
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
    one_task(machine)
    model.play(stops_after_each_task(WORK))

    ran = claude("/harness run", *flags)

    assert (ran.result, len(ran.blocks()), len(ran.hooks("Stop"))) == (TIRED, 1, 2)
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_claude_code_finds_the_plugin_valid(claude: Claude, published: Path) -> None:
    """`claude plugin validate` has nothing against the manifest, the hooks and the page."""
    assert "error" not in claude.plugin("validate", str(published)).out.lower()


@pytest.mark.release
def test_codex_takes_the_plugin(codex: Codex, model: Model, machine: Machine, published: Path) -> None:
    """Installed as a plugin, the skill leads to the one page, and the hooks hold the agent to the end."""
    codex.plugin("marketplace", "add", str(published))
    codex.plugin("add", "harness@harness")
    # README names this place.
    (launcher,) = (codex.home / "plugins" / "cache" / "harness" / "harness").glob("*/bin/harness")
    machine.run(launcher, "--version").check()
    one_task(machine)

    def follows_the_pointer(request: Request) -> Script:
        pointer = Path(listed_page(request.everything))
        assert "../../../SKILL.md" in request.said_by("user")
        page = (pointer.parent / "../../../SKILL.md").resolve()
        request = yield request.shell(f"echo {page}; cat {page}")
        assert "## The loop" in request.last
        yield from stops_after_each_task(WORK)(request)

    model.play(follows_the_pointer)

    codex("$harness:harness run").check()

    assert len(model.asked("hook_prompt")) > 0
    assert machine.statuses == ["completed"]


def test_the_pointer_of_codex_says_what_the_page_says() -> None:
    """Name and description stand in two files, word by word the same."""
    pointer, page = (
        (CHECKOUT / name).read_text(encoding="utf-8").splitlines()[1:3]
        for name in (".codex-plugin/skills/harness/SKILL.md", "SKILL.md")
    )
    assert pointer == page

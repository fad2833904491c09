"""Installed by the real `skills` CLI, typed `/harness run`: Claude Code takes the list to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hosts.agents import DONE, follows_the_page, stops_after_each_task
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks

if TYPE_CHECKING:
    from tests.hosts.claude import Claude
    from tests.hosts.machine import Machine
    from tests.hosts.model import Model


@pytest.mark.release
@pytest.mark.parametrize("mode", ["symlink", pytest.param("copy", marks=pytest.mark.release)])
@pytest.mark.parametrize("scope", [pytest.param("project", marks=pytest.mark.release), "global"])
def test_claude_takes_the_list_to_its_end(
    claude: Claude, model: Model, machine: Machine, published: Path, scope: str, mode: str
) -> None:
    """Three tasks, a dependency and a failing attempt, by following `next:` alone, and so never held."""
    flags = [*(["-g"] if scope == "global" else []), *(["--copy"] if mode == "copy" else [])]
    machine.skills_add(published, *flags)
    home = machine.home if scope == "global" else machine.project
    before = _files(home / ".claude" / "skills" / "harness")
    claude.trust(machine.project)
    three_tasks(machine)
    model.play(follows_the_page(WORK))

    ran = claude("/harness run")

    assert (ran.code, ran.result, ran.blocks()) == (0, DONE, [])
    assert_all_done(machine)
    # The next `skills add` deletes the folder, and Codex distrusts a plugin that changes.
    assert _files(home / ".claude" / "skills" / "harness") == before


@pytest.mark.release
def test_the_page_brings_hooks(claude: Claude, model: Model, machine: Machine, published: Path) -> None:
    """A project's plugin waits for the user's trust; the hooks of a page that was typed hold without it."""
    machine.skills_add(published)
    one_task(machine)
    model.play(stops_after_each_task(WORK))

    ran = claude("/harness run")

    assert ran.hooks("SessionStart") == []
    assert len(ran.blocks()) == 1
    assert machine.statuses == ["completed"]


def _files(folder: Path) -> dict[str, int]:
    """Return every file in `folder` with its time of change."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}

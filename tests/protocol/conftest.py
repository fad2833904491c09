"""Projects as the tests of the verbs have them, and a legacy agent beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.protocol.legacy_agent import LegacyAgent
from tests.verbs.conftest import agent, bare, make_project, project
from tests.verbs.project import Agent, Project

__all__ = ["agent", "bare", "legacy_in", "make_project", "project"]

# Where users stand who meet a list of the legacy protocol: nobody has given them a HARNESS_WORKER_ID.
SHELL: dict[str, str | None] = {"HARNESS_WORKER_ID": None}
STANDS = {"shell": SHELL, "agent": {**SHELL, "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "chat"}}

LegacyIn = Callable[[Path], LegacyAgent]


@pytest.fixture
def legacy_in() -> Iterator[LegacyIn]:
    """Return a callable that lets a legacy agent work in a directory."""
    made: list[LegacyAgent] = []

    def make(top: Path) -> LegacyAgent:
        made.append(LegacyAgent(top))
        return made[-1]

    yield make
    for legacy in made:
        legacy.unlock()


@pytest.fixture
def legacy(project: Project, legacy_in: LegacyIn) -> LegacyAgent:
    return legacy_in(project.top)


def user(project: Project, stand: str = "shell", *, trusts: bool = True) -> Agent:
    """Return who works on the list from a plain shell, or as an agent; in a shell its user has trusted it."""
    if trusts:
        project.agent("user", None, **SHELL).trusts()
    return project.agent("user", None, **STANDS[stand])

"""Projects as the tests of the verbs have them, and an agent that follows the prose beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.protocol.prose import Prose
from tests.verbs.conftest import agent, make_project, project
from tests.verbs.project import Agent, Project

__all__ = ["agent", "make_project", "project", "prose_in"]

# Where users stand who meet a list of the prose: nobody has given them a HARNESS_WORKER_ID.
SHELL: dict[str, str | None] = {"HARNESS_WORKER_ID": None}
STANDS = {"shell": SHELL, "agent": {**SHELL, "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "chat"}}

ProseIn = Callable[[Path], Prose]


@pytest.fixture
def prose_in() -> Iterator[ProseIn]:
    """Return a callable that lets an agent of the prose work in a directory."""
    made: list[Prose] = []

    def make(top: Path) -> Prose:
        made.append(Prose(top))
        return made[-1]

    yield make
    for prose in made:
        prose.unlock()


def user(project: Project, stand: str = "shell") -> Agent:
    """Return who works on the list from a plain shell, or as an agent."""
    return project.agent("user", None, **STANDS[stand])


def trusted(project: Project) -> None:
    """Let a person trust the list."""
    user(project).ok("trust", "--yes", HARNESS_TRUST="1")

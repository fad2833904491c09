"""Projects as the tests of the verbs have them, and an agent that follows the prose beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.protocol.prose import Prose
from tests.verbs.conftest import agent, make_project, project

__all__ = ["agent", "make_project", "project", "prose_in"]

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

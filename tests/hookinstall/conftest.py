"""Projects, as the tests of the verbs have them, and somebody who installs hooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.verbs.conftest import make_project, project
from tests.verbs.project import Agent, Time

__all__ = ["make_project", "project"]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Return somebody who stands in an empty directory: most of this needs no repository."""
    here = tmp_path / "here"
    here.mkdir()
    made = Agent("agent", here, Time())
    yield made
    made.die()

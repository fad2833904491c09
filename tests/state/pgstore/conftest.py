"""A list in a database, and the line to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.state.pgstore.line import Line
from tests.state.pgstore.machines import Shared
from tests.state.pgstore.people import People


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(tmp_path.resolve())


@pytest.fixture
def apart(shared: Shared) -> Iterator[Shared]:
    """Return one in a database of its own, which may be spoilt."""
    with shared.apart():
        yield shared


@pytest.fixture
def line(shared: Shared) -> Iterator[Line]:
    """Return a line to the database that a test may cut."""
    line = Line(shared.server)
    yield line
    line.close()


@pytest.fixture
def people(shared: Shared) -> Iterator[People]:
    with shared.apart(roles=True):
        yield People(shared)

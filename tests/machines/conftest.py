"""Worlds of several machines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.world import Machine, World
from tests.verbs.conftest import with_git

__all__ = ["with_git", "world"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setenv("AGENT_MEMORY", str(memory))
    made = World.make(tmp_path)
    yield made
    made.close()


@pytest.fixture
def one(world: World) -> Machine:
    """Return the first machine, which has moved its list to the database."""
    return world.machine("one")


@pytest.fixture
def two(world: World, one: Machine) -> Machine:
    """Return a machine that has joined the list of `one`."""
    assert world.machines == [one]
    return world.machine("two")

"""Workshops for the tests of unattended runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.runs.workshop import Workshop
from tests.verbs.conftest import agent, make_project, project, with_git

__all__ = ["agent", "make_project", "make_workshop", "project", "with_git", "workshop"]


class Make(Protocol):
    """Make a project with a list of this mode."""

    def __call__(self, *, mode: str = "exclusive") -> Workshop: ...


@pytest.fixture
def make_workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made: list[Workshop] = []
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setenv("AGENT_MEMORY", str(memory))

    def make(*, mode: str = "exclusive") -> Workshop:
        made.append(Workshop.make(tmp_path, mode=mode))
        return made[-1]

    yield make
    for workshop in made:
        workshop.close()


@pytest.fixture
def workshop(make_workshop: Make) -> Workshop:
    return make_workshop()

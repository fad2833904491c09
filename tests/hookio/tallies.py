"""What hooks keep of the agents that they have held."""

from __future__ import annotations

from pathlib import Path

from tests.verbs.project import Project


def kept(project: Project) -> list[Path]:
    """Return the tallies in `project`."""
    return list((project.top / ".harness" / "stops").iterdir())

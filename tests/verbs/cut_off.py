"""An attempt whose agent is gone, in either mode."""

from __future__ import annotations

from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project


def interrupted(make_project: Make, mode: str, check: str = "test -f done") -> tuple[Project, Agent]:
    """Return a project whose agent holds a task and will die."""
    project = make_project(mode=mode)
    agent = project.agent()
    agent.ok("add", "One", "--validate", check)
    agent.ok("claim")
    return project, agent

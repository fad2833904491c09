"""Agents that are cut off in the middle of an attempt, and what their conversation is called."""

from __future__ import annotations

from tests.verbs.project import Agent, Project

NEVER = "test -f done"


def conversation(project: Project, name: str = "abc-1") -> Agent:
    """Return an agent that its host's session id names; `--resume` keeps the id."""
    return project.agent(name, HARNESS_WORKER_ID=None, CLAUDE_CODE_SESSION_ID=name)


def restart(agent: Agent) -> None:
    agent.die()
    agent.wake()

"""Tasks that wait to be claimed."""

from __future__ import annotations

from tests.verbs.project import Agent


def add(agent: Agent, *titles: str, check: str = "test -f done") -> None:
    for title in titles:
        agent.ok("add", title, "--validate", check)

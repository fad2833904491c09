"""Files to import, and what the tasks of a list then wait for."""

from __future__ import annotations

import json

from tests.verbs.project import Project


def json_plan(project: Project, document: object) -> str:
    return str(project.put("tasks.json", json.dumps(document)))


def markdown_plan(project: Project, text: str) -> str:
    return str(project.put("tasks.md", text))


def waits(project: Project) -> dict[str, list[str]]:
    return {task["id"]: task["depends_on"] for task in project.state["tasks"]}

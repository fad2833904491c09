"""Somebody who installs hooks, in projects as the tests of the verbs have them, and the hosts' own files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_lib.agents import registry
from tests.verbs.conftest import make_project, project
from tests.verbs.project import Agent, Time

__all__ = ["make_project", "project"]

HOSTS = sorted(registry.HOSTS)
JSON_HOSTS = [name for name in HOSTS if registry.HOSTS[name].form != "toml"]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Return somebody who stands in an empty directory: most of this needs no repository."""
    here = tmp_path / "here"
    here.mkdir()
    made = Agent("agent", here, Time())
    yield made
    made.die()


def place(home: Path, name: str) -> Path:
    """Return the user's file of the host `name`."""
    return home / registry.HOSTS[name].files["user"][0]


def everything(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def commands(path: Path) -> list[str]:
    """Return every command in a JSON file, in its order."""
    text = path.read_text("utf-8-sig")
    typed: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            typed.extend(value[key] for key in ("command", "bash") if key in value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(each)

    walk(json.loads(text))
    return typed

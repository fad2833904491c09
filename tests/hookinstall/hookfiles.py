"""The hosts' own files, for the tests of `harness hooks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness_lib.agents import registry

HOSTS = sorted(registry.HOSTS)
JSON_HOSTS = [name for name in HOSTS if registry.HOSTS[name].form != "toml"]


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

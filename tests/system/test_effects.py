"""Only `system` and hs start, end and replace processes, by `os` too, where import-linter cannot see it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "harness_lib"
# hs ends with its tools, which are its own.
ROOMS = {"hs", "loop", "system"}
EFFECTS = {"abort", "fork", "forkpty", "kill", "killpg", "popen", "posix_spawn", "posix_spawnp", "system"}
# `harness` as a package manager installs it becomes the launcher.
ALLOWED = {"__main__.py: execv"}


def is_effect(name: str) -> bool:
    return name in EFFECTS or name.startswith(("exec", "spawn"))


def effects(path: Path) -> list[str]:
    """Return the functions of `os` that `path` uses on processes."""
    used: list[str] = []
    text = path.read_text(encoding="utf-8")
    if not re.search(r"\bos\.\w|from os import", text):
        return used
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            used.append(node.attr)
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            used += [each.name for each in node.names]
    return [name for name in used if is_effect(name)]


def test_no_other_room_forks_or_kills() -> None:
    places = {path.relative_to(LIBRARY): effects(path) for path in LIBRARY.rglob("*.py")}
    assert any(names for place, names in places.items() if place.parts[0] == "system")
    others = {place: names for place, names in places.items() if place.parts[0] not in ROOMS}
    assert {f"{place}: {name}" for place, names in others.items() for name in names} == ALLOWED

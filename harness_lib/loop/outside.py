"""Paths in the input of a call that lead out of the project, or to what no tool reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lib.loop import project
from harness_lib.loop.secret_files import is_secret
from harness_lib.loop.tools import skills

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

_LONGEST = 4096
# What every tool of ours calls the file that it is about, there or not.
_PATH = "path"


def named(runtime: Runtime, text: str) -> Path:
    """Return the path that `text` is, seen from the session's directory."""
    # Not by pathlib: for a user that nobody knows it raises an error.
    return runtime.work_directory / os.path.expanduser(text)  # noqa: PTH111


def secrets(runtime: Runtime, tool_input: Json) -> list[Path]:
    """Return the paths in `tool_input` that lead to what no tool reads."""
    return [path for path in _paths(runtime, tool_input) if is_secret(path)]


def directories(runtime: Runtime, tool_input: Json) -> str:
    """Return the directories outside of the project that `tool_input` leads to; "" for none."""
    paths = list(_paths(runtime, tool_input))
    inside = list(_inside(runtime)) if paths else []
    real = [Path(os.path.realpath(path)) for path in paths]
    away = {str(path.parent) for path in real if not any(path.is_relative_to(each) for each in inside)}
    return ", ".join(sorted(away))


def _inside(runtime: Runtime) -> Iterator[Path]:
    """Yield where the project is, and what the model was told to read: results of tools, and skills."""
    yield project.root(runtime, runtime.work_directory).resolve()
    if runtime.session is not None:
        yield runtime.session.directory.resolve()
    for skill in skills.every(runtime).values():
        yield skill.path.parent.resolve()


def _paths(runtime: Runtime, value: Any, key: str = "") -> Iterator[Path]:
    """Yield the paths in a value of JSON: what a tool calls `path`, and whatever else names a file."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(runtime, inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(runtime, inner, key)
    elif isinstance(value, str) and 0 < len(value) < _LONGEST and value.isprintable():
        path = named(runtime, value)
        if key == _PATH or os.path.lexists(path):
            yield path

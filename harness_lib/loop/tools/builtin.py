"""A tool that is a function: its schema, its line for people, and what it does."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop.plugins import Result
from harness_lib.loop.secret_files import REFUSED, is_secret

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime


class ToolError(Exception):
    """The call cannot be done; the message tells the model why."""


@dataclass(frozen=True)
class Builtin:
    """One of our tools. `properties` are those of its input; `reads`: it changes nothing."""

    name: str
    description: str
    properties: Json
    required: list[str]
    function: Callable[[Runtime, Json], Result]
    reads: bool = False
    offered: Callable[[Runtime], bool] = field(default=lambda _: True)

    def schema(self, runtime: Runtime) -> Json | None:
        """Return the schema, or None where there is no use for it."""
        if not self.offered(runtime):
            return None
        schema: Json = {
            "name": self.name,
            "description": self.description,
            "input_schema": {"type": "object", "properties": self.properties, "required": self.required},
        }
        return {**schema, "annotations": {"readOnlyHint": True}} if self.reads else schema

    def describe(self, runtime: Runtime) -> str:  # noqa: ARG002 (as the protocol says)
        """Return the first sentence of the description."""
        return self.description.partition("\n")[0].partition(". ")[0].rstrip(".")

    def execute(self, runtime: Runtime, tool_input: Json) -> Result:
        """Do it; what is wrong with the call is told to the model."""
        try:
            return self.function(runtime, tool_input)
        except ToolError as error:
            return Result(f"error: {error}", error=True)
        except OSError as error:
            name = f" {error.filename}" if error.filename else ""
            return Result(f"error:{name}: {error.strerror or error}", error=True)


def text_of(tool_input: Json, key: str) -> str:
    """Return the string `key`. Raises ToolError if it is missing or no string."""
    value = tool_input.get(key)
    if not isinstance(value, str):
        raise ToolError(f"{key} is required")
    return value


def path_of(runtime: Runtime, tool_input: Json) -> Path:
    """Return the file that the call names, seen from the session's directory. Raises ToolError."""
    text = text_of(tool_input, "path")
    if not text or "\0" in text:
        raise ToolError("path is required")
    # Not by pathlib: for a user that nobody knows it raises an error.
    path = runtime.work_directory / os.path.expanduser(text)  # noqa: PTH111
    if is_secret(path):
        raise ToolError(f"{text} {REFUSED}")
    return path


def number_of(tool_input: Json, key: str) -> int | None:
    """Return the whole number `key` of at least 1; None if it is not there. Raises ToolError."""
    value = tool_input.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        raise ToolError(f"{key} must be a number of at least 1")
    return int(value)

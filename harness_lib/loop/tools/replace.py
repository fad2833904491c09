"""The tool `replace`: a text for another one, where it stands exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import files
from harness_lib.loop.tools.builtin import Builtin, ToolError, path_of, text_of

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime


def _execute(runtime: Runtime, tool_input: Json) -> Result:
    path, old, new = path_of(runtime, tool_input), text_of(tool_input, "old"), text_of(tool_input, "new")
    if not old:
        raise ToolError("old must not be empty; write_file writes a new file")
    text = files.read(path)
    count = text.count(old)
    if not count:
        raise ToolError(
            f"old does not stand in {tool_input['path']}; read it again, spaces and line breaks count"
        )
    if count > 1 and tool_input.get("all") is not True:
        raise ToolError(f"old stands {count} times there; give more of what is around it, or all: true")
    files.write(path, text.replace(old, new))
    return Result(f"replaced {count} time{'s' if count > 1 else ''} in {tool_input['path']}")


TOOL = Builtin(
    name="replace",
    description="Replace a text in a file by another one. It must stand there once, unless all is true.",
    properties={
        "path": {"type": "string", "description": "The file"},
        "old": {
            "type": "string",
            "description": "The text as it stands there, with all spaces and line breaks",
        },
        "new": {"type": "string", "description": "The text in its place"},
        "all": {"type": "boolean", "description": "Replace every one"},
    },
    required=["path", "old", "new"],
    function=_execute,
)

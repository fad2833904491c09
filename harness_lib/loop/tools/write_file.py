"""The tool `write_file`: a file as it shall be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import files
from harness_lib.loop.tools.builtin import Builtin, path_of, text_of

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime


def _execute(runtime: Runtime, tool_input: Json) -> Result:
    path, content = path_of(runtime, tool_input), text_of(tool_input, "content")
    files.write(path, content)
    return Result(f"wrote {len(content.encode('utf-8', 'replace'))} bytes to {tool_input['path']}")


TOOL = Builtin(
    name="write_file",
    description="Write a file, in place of what is there. Makes the directories above it.",
    properties={
        "path": {"type": "string", "description": "The file"},
        "content": {"type": "string", "description": "All that it shall hold"},
    },
    required=["path", "content"],
    function=_execute,
)

"""The tool `read_file`: lines with the anchors by which `edit_file` names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import anchors, clip, files
from harness_lib.loop.tools.builtin import Builtin, ToolError, number_of, path_of

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

_DEFAULT_LINES = 2000


def _execute(runtime: Runtime, tool_input: Json) -> Result:
    path = path_of(runtime, tool_input)
    lines = files.split(files.read(path))
    offset, count = number_of(tool_input, "offset"), number_of(tool_input, "limit")
    most = _limit(runtime)
    if offset is None and count is None and len(lines) > most:
        raise ToolError(
            f"{path} has {len(lines)} lines, more than {most}; read parts of it with offset and limit"
        )
    first = offset or 1
    if first > max(1, len(lines)):
        raise ToolError(f"offset {first} is behind the last line; {path} has {len(lines)}")
    shown = anchors.show(lines[first - 1 : first - 1 + (count or most)], first)
    return Result(clip.text(runtime, shown))


def _limit(runtime: Runtime) -> int:
    text = runtime.env.get("HARNESS_READ_LIMIT", "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else _DEFAULT_LINES


TOOL = Builtin(
    name="read_file",
    description=(
        "Read a text file. Each line comes as N#HH:text; N#HH is its anchor, which edit_file takes. "
        "Long files are read in parts, by offset and limit."
    ),
    properties={
        "path": {"type": "string", "description": "The file"},
        "offset": {"type": "integer", "description": "The first line, counted from 1"},
        "limit": {"type": "integer", "description": "How many lines"},
    },
    required=["path"],
    function=_execute,
    reads=True,
)

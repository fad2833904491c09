"""The tools `read_file`, `write_file` and `replace`, and what `edit_file` shares with them.

Nothing of a file that they do not change gets lost. Anchors of lines, `N#HH`, are a number and two letters
made from the line; on what has changed they fail. They are bit for bit those of the original: its sessions
hold them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import confined
from harness_lib.loop.disk import number
from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import builtin
from harness_lib.loop.tools.builtin import Builtin, Change, ToolError, number_of, path_of, text_of
from harness_lib.system.files import atomic
from harness_lib.text import counted

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime


_LETTERS = "ZPMQVRWSNKTXJBYH"
_ASCII = 127
_DEFAULT_LINES = 2000


def read(path: Path) -> str:
    """Return the text of `path`, line ends as they are. Raises ToolError if it is not a text file."""
    if not path.is_file():
        raise ToolError(f"{path} {'is not a regular file' if path.exists() else 'does not exist'}")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not UTF-8 text") from None


def write(path: Path, text: str) -> None:
    """Replace the content of `path` in one step; its mode, and a symlink, stay. Makes its parents."""
    if path.exists() and not path.is_file():
        raise ToolError(f"{path} is not a regular file")
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(target, text.encode("utf-8", "replace"), durable=False)


def split(text: str) -> list[str]:
    """Return the lines of `text`; a line break at the end ends the last line and begins none."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


_START, _FACTOR, _MIX, _BITS = 5381, 33, 2654435761, 0xFFFFFFFF


def anchor_letters(line: str, number: int) -> str:
    """Return the two letters of the anchor of `line`, the line `number`."""
    text = line.replace("\r", "").rstrip(" \t")
    value = _START
    for char in text:
        code = ord(char)
        value = (value * _FACTOR + (code if code <= _ASCII else 0)) & _BITS
    # Lines of brackets alone differ only by their number.
    if not any(char.isascii() and char.isalnum() for char in text):
        value = (value + number * _MIX) & _BITS
    return _LETTERS[(value >> 4) & 15] + _LETTERS[value & 15]


def anchored(lines: list[str], first: int = 1) -> str:
    """Return `lines` with their anchors, the first of them at number `first`."""
    return "\n".join(
        f"{number}#{anchor_letters(line, number)}:{line}" for number, line in enumerate(lines, first)
    )


def _read_file(runtime: Runtime, tool_input: Json) -> Result:
    path = path_of(runtime, tool_input)
    lines = split(read(path))
    offset, count = number_of(tool_input, "offset"), number_of(tool_input, "limit")
    most = number(runtime.env.get("HARNESS_READ_LIMIT", "")) or _DEFAULT_LINES
    if offset is None and count is None and len(lines) > most:
        raise ToolError(
            f"{path} has {len(lines)} lines (limit: {most}); read parts of it with offset and limit"
        )
    first = offset or 1
    if first > max(1, len(lines)):
        raise ToolError(f"offset {first} is after the last line; {path} has {len(lines)}")
    shown = anchored(lines[first - 1 : first - 1 + (count or most)], first)
    return Result(builtin.clipped(runtime, shown))


READ_FILE = Builtin(
    name="read_file",
    description=(
        "Read a text file. Each line comes as N#HH:text; N#HH is its anchor, which edit_file takes. "
        "Long files are read in parts, by offset and limit."
    ),
    inputs={
        "path": "The file",
        "offset?": (int, "The first line, counted from 1"),
        "limit?": (int, "How many lines"),
    },
    function=_read_file,
    reads=True,
)


def _written(runtime: Runtime, tool_input: Json) -> Change:
    path, content = path_of(runtime, tool_input), text_of(tool_input, "content")
    try:
        old = path.read_bytes().decode("utf-8") if path.is_file() else None
    except UnicodeDecodeError:
        old = None
    return Change(path, old, content)


def edit(
    change: Callable[[Runtime, Json], Change],
    report: Callable[[Json, Change], str],
    runtime: Runtime,
    tool_input: Json,
) -> Result:
    """Write what `change` makes of a file, and return what `report` says about it."""
    made = change(runtime, tool_input)
    if problem := confined.problem(runtime, made.path, writes=True):
        raise ToolError(problem)
    write(made.path, made.new)
    return Result(builtin.clipped(runtime, report(tool_input, made)))


def _wrote(tool_input: Json, change: Change) -> str:
    return f"wrote {len(change.new.encode('utf-8', 'replace'))} bytes to {tool_input['path']}"


WRITE_FILE = Builtin(
    name="write_file",
    description="Write a file, replacing an existing one. Creates its parent directories.",
    inputs={
        "path": "The file",
        "content": "The whole content",
    },
    function=partial(edit, _written, _wrote),
    change=_written,
)


def _replaced(runtime: Runtime, tool_input: Json) -> Change:
    path, old, new = path_of(runtime, tool_input), text_of(tool_input, "old"), text_of(tool_input, "new")
    if not old:
        raise ToolError("old must not be empty; write_file writes a new file")
    text = read(path)
    if "\n" in old and old not in text and "\r\n" in text:
        # A model does not see the line breaks of Windows.
        old, new = (each.replace("\n", "\r\n") for each in (old, new))
    count = text.count(old)
    if not count:
        raise ToolError(f"old is not in {tool_input['path']}; read it again, spaces and line breaks count")
    if count > 1 and tool_input.get("all") is not True:
        raise ToolError(f"old occurs {count} times; include more of the lines around it, or set all: true")
    return Change(path, text, text.replace(old, new))


def _counted(tool_input: Json, change: Change) -> str:
    old = change.old or ""
    times = counted(
        old.count(tool_input["old"]) or old.count(tool_input["old"].replace("\n", "\r\n")), "time"
    )
    return f"replaced {times} in {tool_input['path']}"


REPLACE = Builtin(
    name="replace",
    description="Replace a text in a file by another one. It must occur exactly once, unless all is true.",
    inputs={
        "path": "The file",
        "old": "The exact text, with all spaces and line breaks",
        "new": "The new text",
        "all?": (bool, "Replace every occurrence"),
    },
    function=partial(edit, _replaced, _counted),
    change=_replaced,
)

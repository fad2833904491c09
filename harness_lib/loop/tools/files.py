"""The tools `read_file`, `write_file`, `replace` and `edit_file`, and the difference that a change makes.

Nothing of a file that they do not change gets lost. Anchors of lines, `N#HH`, are a number and two letters
made from the line; on what has changed they fail. They are bit for bit those of the original: its sessions
hold them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness_lib.loop import confined
from harness_lib.loop.disk import number
from harness_lib.loop.piped import Json, are_objects
from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import builtin
from harness_lib.loop.tools.builtin import Builtin, Change, ToolError, number_of, path_of, text_of
from harness_lib.system import fs
from harness_lib.text import counted, cut, first

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime

_LETTERS = "ZPMQVRWSNKTXJBYH"
_ASCII = 127
_DEFAULT_LINES = 2000
_SHOWN_LINES = 80
# Bytes of a file: its lines take many times as much memory.
_LARGEST = 64 * 1024 * 1024
_CONTEXT = 2
_ANCHOR = r"^(\d{1,9})#([A-Z]{2})$"
_COPIED = r"^\d+#[ZPMQVRWSNKTXJBYH]{2}:"
# The types of edits; at one place the lowest is first.
_RANKS = {"replace_range": 2, "append_at": 1, "prepend_at": 2, "append_file": 3, "prepend_file": 0}


def _read(path: Path) -> str:
    """Return the text of `path`, line ends as they are. Raises ToolError if it is not a text file."""
    if not path.is_file():
        raise ToolError(f"{path} {'is not a regular file' if path.exists() else 'does not exist'}")
    if (size := path.stat().st_size) > _LARGEST:
        raise ToolError(f"{path} has {size} bytes, too many for this tool; use a command, as sed -n 1,50p")
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not UTF-8 text") from None


def _split(text: str) -> list[str]:
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


def _anchored(lines: list[str], first: int = 1) -> str:
    """Return `lines` with their anchors, the first of them at number `first`."""
    return "\n".join(
        f"{number}#{anchor_letters(line, number)}:{line}" for number, line in enumerate(lines, first)
    )


def _read_file(runtime: Runtime, tool_input: Json) -> Result:
    path = path_of(runtime, tool_input)
    lines = _split(_read(path))
    offset, count = number_of(tool_input, "offset"), number_of(tool_input, "limit")
    most = number(runtime.env.get("HARNESS_READ_LIMIT", "")) or _DEFAULT_LINES
    if offset is None and count is None and len(lines) > most:
        raise ToolError(
            f"{path} has {len(lines)} lines (limit: {most}); read parts of it with offset and limit"
        )
    first = offset or 1
    if first > max(1, len(lines)):
        raise ToolError(f"offset {first} is after the last line; {path} has {len(lines)}")
    shown = _anchored(lines[first - 1 : first - 1 + (count or most)], first)
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


def _editor(
    name: str,
    description: str,
    inputs: Mapping[str, str | tuple[type, str] | Json],
    change: Callable[[Runtime, Json], Change],
    report: Callable[[Json, Change], str],
) -> Builtin:
    """Return a tool that writes what `change` makes of a file, and returns what `report` says about it."""

    def edit(runtime: Runtime, tool_input: Json) -> Result:
        made = change(runtime, tool_input)
        if problem := confined.problem(runtime, made.path, writes=True):
            raise ToolError(problem)
        if made.path.exists() and not made.path.is_file():
            raise ToolError(f"{made.path} is not a regular file")
        # Its mode, and a symlink, stay.
        target = Path(os.path.realpath(made.path))
        target.parent.mkdir(parents=True, exist_ok=True)
        fs.write(target, made.new.encode("utf-8", "replace"), durable=False)
        return Result(builtin.clipped(runtime, report(tool_input, made)))

    return Builtin(name, description, inputs, edit, change=change)


def _written(runtime: Runtime, tool_input: Json) -> Change:
    path, content = path_of(runtime, tool_input), text_of(tool_input, "content")
    old = None
    with suppress(ToolError):
        old = _read(path)
    return Change(path, old, content)


WRITE_FILE = _editor(
    name="write_file",
    description="Write a file, replacing an existing one. Creates its parent directories.",
    inputs={
        "path": "The file",
        "content": "The whole content",
    },
    change=_written,
    report=lambda tool_input, change: (
        f"wrote {len(change.new.encode('utf-8', 'replace'))} bytes to {tool_input['path']}"
    ),
)


def _replaced(runtime: Runtime, tool_input: Json) -> Change:
    path, old, new = path_of(runtime, tool_input), text_of(tool_input, "old"), text_of(tool_input, "new")
    if not old:
        raise ToolError("old must not be empty; write_file writes a new file")
    text = _read(path)
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


REPLACE = _editor(
    name="replace",
    description="Replace a text in a file by another one. It must occur exactly once, unless all is true.",
    inputs={
        "path": "The file",
        "old": "The exact text, with all spaces and line breaks",
        "new": "The new text",
        "all?": (bool, "Replace every occurrence"),
    },
    change=_replaced,
    report=_counted,
)


class _Edit(NamedTuple):
    """Put `lines` in place of the lines from `start` up to `stop`."""

    start: int
    stop: int
    lines: list[str]
    rank: int


def _edited(runtime: Runtime, tool_input: Json) -> Change:
    path = path_of(runtime, tool_input)
    edits = tool_input.get("edits")
    if not edits or not are_objects(edits):
        raise ToolError("edits must be a list of objects")
    read = _read(path)
    # All line breaks are those of Windows, and stay so: a model does not see them.
    of_windows = "\n" in read and read.count("\n") == read.count("\r\n")
    text = read.replace("\r\n", "\n") if of_windows else read
    lines = _split(text)
    changes = [_parsed(edit, lines) for edit in edits]
    # Those at one place follow each other as they were given.
    ordered = sorted(changes, key=lambda change: (change.start, change.rank, change.stop))
    for before, after in pairwise(ordered):
        if after.start < before.stop:
            raise ToolError(f"two edits change line {after.start + 1}; make them one")
    edited = list(lines)
    for change in reversed(ordered):
        edited[change.start : change.stop] = change.lines
    ends = "\n" if edited and (text.endswith("\n") or not text) else ""
    new = "\n".join(edited) + ends
    # A model may write them, too.
    return Change(path, read, new.replace("\r\n", "\n").replace("\n", "\r\n") if of_windows else new)


def _report(tool_input: Json, change: Change) -> str:
    before, lines = _split(change.old or ""), _split(change.new)
    shown = f"\n{_anchored(lines)}" if len(lines) <= _SHOWN_LINES else ""
    return f"edited {tool_input['path']}: {len(before)} lines before, {len(lines)} now{shown}"


def _parsed(edit: Json, lines: list[str]) -> _Edit:
    kind, content = str(edit.get("type")), _content(edit.get("content"))
    if kind not in _RANKS:
        raise ToolError(f"type must be one of {', '.join(_RANKS)}, not {kind}")
    if kind in {"append_file", "prepend_file"}:
        start = stop = len(lines) if kind == "append_file" else 0
    else:
        start = stop = _place(edit.get("pos"), lines) + (kind == "append_at")
    if kind == "replace_range":
        stop = 1 + (_place(edit["end"], lines) if edit.get("end") is not None else start)
        if stop <= start:
            raise ToolError(f"the range {edit.get('pos')} to {edit.get('end')} ends before it begins")
    return _Edit(start, stop, content, _RANKS[kind])


def _place(anchor: object, lines: list[str]) -> int:
    """Return the index of the line that `anchor` names. Raises ToolError if it is another by now."""
    parsed = re.match(_ANCHOR, anchor.strip()) if isinstance(anchor, str) else None
    if not parsed:
        raise ToolError(f"invalid anchor {anchor}: it must be N#HH, as read_file shows it")
    number, expected = int(parsed[1]), parsed[2]
    if not 1 <= number <= len(lines):
        raise ToolError(f"MISMATCH at line {number}: the file has {len(lines)} lines")
    actual = anchor_letters(lines[number - 1], number)
    if actual != expected:
        places = range(max(1, number - _CONTEXT), min(len(lines), number + _CONTEXT) + 1)
        shown = [f"{'>>> ' if at == number else '    '}{_anchored([lines[at - 1]], at)}" for at in places]
        head = f"MISMATCH at line {number}: expected {expected}, got {actual}"
        raise ToolError("\n".join([head, *shown]))
    return number - 1


def _content(value: object) -> list[str]:
    """Return the lines of `content`: a list of lines, a text, or nothing, which deletes."""
    if value is None:
        return []
    if isinstance(value, str):
        lines = _split(value) if value else []
    elif isinstance(value, list) and all(isinstance(line, str) for line in value):
        lines = value
    else:
        raise ToolError("content must be a list of lines or a text")
    # A model may have copied the anchors along.
    return [re.sub(_COPIED, "", line) for line in lines]


EDIT_FILE = _editor(
    name="edit_file",
    description=(
        "Change lines of a text file by the anchors that read_file shows (N#HH). All anchors are "
        "checked before anything is changed, and name the file as it was read. "
        "Types: replace_range (pos, end; content "
        "null deletes), append_at and prepend_at (pos), append_file, prepend_file."
    ),
    inputs={
        "path": "The file",
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": list(_RANKS)},
                    "pos": {"type": "string", "description": "Anchor of the line, or of the range's first"},
                    "end": {"type": "string", "description": "Anchor of the range's last line"},
                    "content": {
                        "description": "The new lines",
                        "anyOf": [
                            {"type": "array", "items": {"type": "string"}},
                            {"type": "string"},
                            {"type": "null"},
                        ],
                    },
                },
                "required": ["type"],
            },
        },
    },
    change=_edited,
    report=_report,
)


_SHOWN_AROUND = 3
# More lines that changed are not compared with each other: that takes minutes.
_COMPARED_LINES = 2000
LINES = 400
_LINE_CHARACTERS = 500
_NUMBER = r"([-+])(\d+)"


def unified(change: Change, most: int = LINES) -> str:
    """Return the first `most` lines of the difference, "" where the text stays the same.

    It is not safe to print as it is. Its first line names the file, and the target if it is a link.
    """
    old, new = _lines(change.old or ""), _lines(change.new)
    if old == new and change.old is not None:
        return ""
    marked = (line.replace("\n", "\n\\ No newline at end of file") for line in _hunks(old, new))
    lines = [cut(part, _LINE_CHARACTERS) for line in marked for part in line.split("\n")]
    real = os.path.realpath(change.path)
    leads = "" if real == os.path.abspath(change.path) else f" (leads to {real})"  # noqa: PTH100 (links stay)
    kind = "edit" if change.old is not None else "new file"
    return "\n".join([f"{kind} {change.path}{leads}", *first(lines, most, " lines")])


def _lines(text: str) -> list[str]:
    """Return the lines; only a last one that no line break ends has one here."""
    *lines, last = text.split("\n")
    return [*lines, f"{last}\n"] if last else lines


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield the changed parts with their context; a common beginning and end are not compared."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    most -= head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    first, last = max(0, head - _SHOWN_AROUND), max(0, tail - _SHOWN_AROUND)
    mine, theirs = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(mine), len(theirs)) > _COMPARED_LINES:
        mine, theirs = old[head : len(old) - tail], new[head : len(new) - tail]
        yield f"@@ -{head + bool(mine)},{len(mine)} +{head + bool(theirs)},{len(theirs)} @@"
        yield from [*(f"-{line}" for line in mine), *(f"+{line}" for line in theirs)]
        return
    from difflib import unified_diff  # noqa: PLC0415 (only where a difference is shown)

    # The first two lines name the files.
    for line in islice(unified_diff(mine, theirs, lineterm=""), 2, None):
        moved = re.sub(_NUMBER, lambda match: f"{match[1]}{int(match[2]) + first}", line)
        yield moved if line.startswith("@@") else line

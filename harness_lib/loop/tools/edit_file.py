"""The tool `edit_file`, changes at anchors, all of them or none; and the difference that a change makes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from harness_lib.loop.tools import files
from harness_lib.loop.tools.builtin import Builtin, Change, ToolError, path_of
from harness_lib.text import cut

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

_SHOWN_LINES = 80
_CONTEXT = 2
_ANCHOR = r"^(\d{1,9})#([A-Z]{2})$"
_COPIED = r"^\d+#[ZPMQVRWSNKTXJBYH]{2}:"
# The types of edits; at one place the lowest is first.
_RANKS = {"replace_range": 2, "append_at": 1, "prepend_at": 2, "append_file": 3, "prepend_file": 0}


class _Edit(NamedTuple):
    """Put `lines` in place of the lines from `start` up to `stop`."""

    start: int
    stop: int
    lines: list[str]
    rank: int


def _edited(runtime: Runtime, tool_input: Json) -> Change:
    path = path_of(runtime, tool_input)
    edits = tool_input.get("edits")
    if not isinstance(edits, list) or not edits or not all(isinstance(edit, dict) for edit in edits):
        raise ToolError("edits must be a list of objects")
    text = files.read(path)
    lines = files.split(text)
    changes = [_edit(edit, lines) for edit in edits]
    # Those at one place follow each other as they were given.
    ordered = sorted(changes, key=lambda change: (change.start, change.rank, change.stop))
    for before, after in pairwise(ordered):
        if after.start < before.stop:
            raise ToolError(f"two edits change line {after.start + 1}; make them one")
    edited = list(lines)
    for change in reversed(ordered):
        edited[change.start : change.stop] = change.lines
    ends = "\n" if edited and (text.endswith("\n") or not text) else ""
    return Change(path, text, "\n".join(edited) + ends)


def _report(tool_input: Json, change: Change) -> str:
    before, lines = files.split(change.old or ""), files.split(change.new)
    shown = f"\n{files.anchored(lines)}" if len(lines) <= _SHOWN_LINES else ""
    return f"edited {tool_input['path']}: {len(before)} lines before, {len(lines)} now{shown}"


def _edit(edit: Json, lines: list[str]) -> _Edit:
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
    if parsed is None:
        raise ToolError(f"invalid anchor {anchor}: it must be N#HH, as read_file shows it")
    number, expected = int(parsed[1]), parsed[2]
    if not 1 <= number <= len(lines):
        raise ToolError(f"MISMATCH at line {number}: the file has {len(lines)} lines")
    actual = files.anchor_letters(lines[number - 1], number)
    if actual != expected:
        places = range(max(1, number - _CONTEXT), min(len(lines), number + _CONTEXT) + 1)
        shown = [
            f"{'>>> ' if at == number else '    '}{files.anchored([lines[at - 1]], at)}" for at in places
        ]
        head = f"MISMATCH at line {number}: expected {expected}, got {actual}"
        raise ToolError("\n".join([head, *shown]))
    return number - 1


def _content(value: object) -> list[str]:
    """Return the lines of `content`: a list of lines, a text, or nothing, which deletes."""
    if value is None:
        return []
    if isinstance(value, str):
        lines = files.split(value) if value else []
    elif isinstance(value, list) and all(isinstance(line, str) for line in value):
        lines = value
    else:
        raise ToolError("content must be a list of lines or a text")
    # A model may have copied the anchors along.
    return [re.sub(_COPIED, "", line) for line in lines]


TOOL = Builtin(
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
    function=partial(files.edit, _edited, _report),
    change=_edited,
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
    if len(lines) > most:
        lines[most:] = [f"... ({len(lines) - most} more lines)"]
    real = os.path.realpath(change.path)
    leads = "" if real == os.path.abspath(change.path) else f" (leads to {real})"  # noqa: PTH100 (links stay)
    kind = "edit" if change.old is not None else "new file"
    return "\n".join([f"{kind} {change.path}{leads}", *lines])


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

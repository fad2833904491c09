"""Show an edit as a unified difference, in bounded time and length."""

from __future__ import annotations

import os
from collections.abc import Iterator

from harness_lib.loop.tools.builtin import Change
from harness_lib.text import cut

_CONTEXT = 3
# More lines that changed are not compared with each other: that takes minutes.
_COMPARED_LINES = 2000
LINES = 400
_LINE_CHARACTERS = 500


def unified(change: Change, most: int = LINES) -> str:
    """Return the first `most` lines of the difference, "" where the text stays the same.

    It is not safe to print as it is. Its first line names the file, and the target if it is a link.
    """
    old, new = _lines(change.old or ""), _lines(change.new)
    if old == new and change.old is not None:
        return ""
    lines = [cut(line, _LINE_CHARACTERS) for line in _hunks(old, new)]
    if len(lines) > most:
        lines[most:] = [f"... ({len(lines) - most} more lines)"]
    real = os.path.realpath(change.path)
    leads = "" if real == os.path.abspath(change.path) else f" (leads to {real})"  # noqa: PTH100 (links stay)
    kind = "edit" if change.old is not None else "new file"
    return "\n".join([f"{kind} {change.path}{leads}", *lines])


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n"]


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    for group in _groups(old, new):
        (_, old_start, _, new_start, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@"
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                yield from _marked(" ", old[i1:i2])
            else:
                yield from _marked("-", old[i1:i2])
                yield from _marked("+", new[j1:j2])


def _marked(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line.removesuffix(chr(10))}"
        if line.endswith("\n"):
            yield "\\ No newline at end of file"


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


Opcode = tuple[str, int, int, int, int]


def _groups(old: list[str], new: list[str]) -> Iterator[list[Opcode]]:
    """Yield the changed parts with their context; a common beginning and end are not compared."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    most -= head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    first, last = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    mine, theirs = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(mine), len(theirs)) > _COMPARED_LINES:
        before, after = head - first, tail - last
        i, j = len(mine) - after, len(theirs) - after
        begin, end = ("equal", 0, before, 0, before), ("equal", i, len(mine), j, len(theirs))
        groups: list[list[Opcode]] = [[begin, ("replace", before, i, before, j), end]]
    else:
        from difflib import SequenceMatcher  # noqa: PLC0415 (only where a difference is shown)

        groups = list(SequenceMatcher(None, mine, theirs).get_grouped_opcodes(_CONTEXT))
    for group in groups:
        yield [(kind, i1 + first, i2 + first, j1 + first, j2 + first) for kind, i1, i2, j1, j2 in group]

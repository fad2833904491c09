"""Search files for the tool `grep`, in a process that can be killed: some patterns take forever.

Reads one JSON object from standard input and prints matches as `grep -n` does. Imports the standard library
only, because it starts for every search.
"""

from __future__ import annotations

import io
import json
import re
import sys

_LARGEST = 10 * 1024 * 1024
_LONGEST_LINE = 500


def main() -> int:
    """Search; return 0, or 2 for an invalid pattern."""
    asked = json.load(sys.stdin)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    try:
        pattern = re.compile(asked["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        sys.stdout.write(f"error: invalid regular expression: {error}\n")
        return 2
    left = asked["limit"]
    for file, name in asked["files"]:
        lines = _lines(file)
        hits = [number for number, line in enumerate(lines) if pattern.search(line)][: left + 1]
        _show(name, lines, hits[:left], asked["context"])
        left -= len(hits)
        if left < 0:
            sys.stdout.write(f"... (more than {asked['limit']}; narrow the search)\n")
            break
    return 0


def _lines(name: str) -> list[str]:
    """Return the lines of a text file; none of another one, or one that cannot be read."""
    try:
        with open(name, "rb") as stream:  # noqa: PTH123 (pathlib is slow to import)
            data = stream.read(_LARGEST + 1)
    except OSError:
        return []
    if len(data) > _LARGEST or b"\0" in data[:8192]:
        return []
    lines = data.decode("utf-8", "replace").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _show(name: str, lines: list[str], hits: list[int], context: int) -> None:
    matched, last = set(hits), -1
    around = {at for hit in hits for at in range(hit - context, hit + context + 1)}
    for at in sorted(around & set(range(len(lines)))):
        if context and last >= 0 and at > last + 1:
            sys.stdout.write("--\n")
        sign, last = ":" if at in matched else "-", at
        line = lines[at].rstrip("\r")
        shown = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
        sys.stdout.write(f"{name}{sign}{at + 1}{sign}{shown}\n")

"""Draw the rooms of harness_lib from its imports, as docs/architecture.md shows them.

Run: python docs/rooms.py, which writes the picture into the page; a test compares the two.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import tomlkit

CHECKOUT = Path(__file__).resolve().parents[1]
LIBRARY = CHECKOUT / "harness_lib"
PAGE = CHECKOUT / "docs" / "architecture.md"
BEGIN, END = "<!-- python docs/rooms.py -->\n\n```text\n", "```\n"
WIDTH, COLUMN = 100, 14


def main() -> None:
    """Put the picture of today into the page."""
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def renewed(page: str) -> str:
    """Return the page with the picture as the imports are now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + picture() + END + rest.partition(END)[2]


def picture() -> str:
    """Return the floors from the top down: of each room what it is for, and which rooms it imports."""
    floors = ["".join(_room(name) for name in floor) for floor in _floors()]
    return ("─" * WIDTH + "\n").join(floors)


def _room(name: str) -> str:
    files = _files(name)
    said = ast.get_docstring(ast.parse(files[0].read_text(encoding="utf-8"))) or ""
    used = {room for path in files for room in _imported(path)} - {name}
    order = [room for floor in _floors() for room in floor if room in used]
    shown = name + "/" if (LIBRARY / name).is_dir() else name
    lines = textwrap.wrap(said.partition("\n")[0], WIDTH - COLUMN)
    if order:
        lines += textwrap.wrap("▶ " + "  ".join(order), WIDTH - COLUMN, subsequent_indent="  ")
    return "".join(
        f"{head:<{COLUMN}}{line}\n" for head, line in zip([shown, *[""] * len(lines)], lines, strict=False)
    )


@cache
def _floors() -> list[list[str]]:
    """Return the layers that import-linter holds, each as the names of its rooms."""
    project = tomlkit.parse((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")).unwrap()
    layers = next(each["layers"] for each in project["tool"]["importlinter"]["contracts"] if "layers" in each)
    return [[name.strip(" ()") for name in floor.replace(":", "|").split("|")] for floor in layers]


def _files(name: str) -> list[Path]:
    """Return the files of a room, the one that says what it is for first."""
    room = LIBRARY / name
    return sorted(room.rglob("*.py")) if room.is_dir() else [room.with_suffix(".py")]


def _imported(path: Path) -> Iterator[str]:
    """Yield the rooms that a file imports, at its top or later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            whole = [alias.name for alias in node.names]
        else:
            continue
        for name in whole:
            parts = name.split(".")
            if parts[0] == "harness_lib" and len(parts) > 1:
                yield parts[1]


if __name__ == "__main__":
    main()

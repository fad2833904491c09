"""Measure Python code as a reader meets it: files, lines, statements and tokens, a row for each room.

usage: python benchmarks/size.py [--budget] [FOLDER ...]   (default: harness_lib tests hooks benchmarks)

Tokens are names, numbers, strings and operators. Comments, docstrings, blank lines and layout do not count,
so that denser lines do not look smaller. --budget prints the rows as tests/budget.toml has them.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent
FOLDERS = ("harness_lib", "tests", "hooks", "benchmarks")
COUNTED = frozenset({tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP})


class Size(NamedTuple):
    """How much code there is."""

    files: int = 0
    lines: int = 0
    statements: int = 0
    tokens: int = 0

    def plus(self, other: Size) -> Size:
        """Return both together."""
        return Size(*(mine + its for mine, its in zip(self, other, strict=True)))


def of_file(path: Path) -> Size:
    """Return the size of one file."""
    text = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {(node.lineno, node.col_offset) for node in map(_docstring, nodes) if node is not None}
    statements = sum(isinstance(node, ast.stmt) for node in nodes) - len(docstrings)
    tokens = sum(token.start not in docstrings for token in _counted(text))
    return Size(1, text.count("\n"), statements, tokens)


def _counted(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the tokens that count; an f-string is one, as before Python 3.12."""
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[token.type]
        if name == "FSTRING_START":
            depth += 1
            if depth == 1:
                yield token
        elif name == "FSTRING_END":
            depth -= 1
        elif not depth and token.type in COUNTED:
            yield token


def _docstring(node: ast.AST) -> ast.Constant | None:
    match node:
        case (
            ast.Module(body=[first, *_])
            | ast.ClassDef(body=[first, *_])
            | ast.FunctionDef(body=[first, *_])
            | ast.AsyncFunctionDef(body=[first, *_])
        ):
            match first:
                case ast.Expr(value=ast.Constant(value=str()) as text):
                    return text
    return None


def rooms(folder: str) -> dict[str, Size]:
    """Return the size of each directory directly below `folder`, and of its own files under its name."""
    sizes: dict[str, Size] = {}
    for path in sorted((CHECKOUT / folder).rglob("*.py")):
        parts = path.relative_to(CHECKOUT).parts
        room = "/".join(parts[:2]) if len(parts) > 2 else parts[0]  # noqa: PLR2004 (folder, room, file)
        sizes[room] = sizes.get(room, Size()).plus(of_file(path))
    return sizes


def whole(sizes: dict[str, Size]) -> Size:
    """Return all rooms together."""
    total = Size()
    for each in sizes.values():
        total = total.plus(each)
    return total


def _table(folders: list[str]) -> Iterator[str]:
    yield f"{'room':28}{'files':>7}{'lines':>9}{'statements':>12}{'tokens':>10}"
    for folder in folders:
        sizes = rooms(folder)
        for name, size in [(f"all of {folder}", whole(sizes)), *sorted(sizes.items())]:
            yield f"{name:28}{size.files:>7}{size.lines:>9}{size.statements:>12}{size.tokens:>10}"


def _budget(folders: list[str]) -> Iterator[str]:
    for folder in folders:
        for name, size in sorted(rooms(folder).items()):
            yield f'"{name}" = {{ files = {size.files}, lines = {size.lines}, tokens = {size.tokens} }}'


if __name__ == "__main__":
    named = [word for word in sys.argv[1:] if not word.startswith("-")] or list(FOLDERS)
    for row in (_budget if "--budget" in sys.argv else _table)(named):
        print(row)

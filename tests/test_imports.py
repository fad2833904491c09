"""What several tests share is a module of its own, so that a file of tests can be moved or split alone."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent


def _imported(path: Path) -> set[str]:
    """Return the modules that `path` may import, and the names from them, which may be modules, too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{each.name}" for each in node.names}
    return names


def _files_of_tests() -> set[str]:
    return {path.stem for path in TESTS.rglob("test_*.py")}


def test_nothing_is_imported_from_a_file_of_tests() -> None:
    files = _files_of_tests()
    strays = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in sorted(_imported(path))
        if not files.isdisjoint(name.split("."))
    ]
    assert strays == []

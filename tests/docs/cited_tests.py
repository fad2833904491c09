"""The tables of a page whose rows are shown by tests, and whether those tests exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache

from tests.conftest import CHECKOUT

CITATION = re.compile(r"`(tests/[^`]*)`")


def rows(text: str, head: Sequence[str]) -> Iterator[list[str]]:
    """Yield the cells of all tables in `text`, without their heads; a row of other cells fails."""
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|--"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == len(head), line
            if cells != head:
                yield cells


def cited(shown: str) -> list[str]:
    """Return the tests that a cell cites, all of which exist; it says nothing else."""
    names = CITATION.findall(shown)
    assert CITATION.sub("", shown).strip() == "", shown
    assert [name for name in names if not _exists(name)] == [], shown
    return names


def _exists(citation: str) -> bool:
    """Answer for `tests/FILE::TEST` or `tests/FILE::Class::TEST`."""
    path, *names = citation.split("::")
    return (CHECKOUT / path).is_file() and "::".join(names) in _tests(path)


@cache
def _tests(path: str) -> frozenset[str]:
    """Return the names of the tests in a file, those of classes as `Class::name`."""
    tree = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
    nodes = [("", node) for node in tree.body]
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            nodes += [(f"{each.name}::", node) for node in each.body]
    return frozenset(
        prefix + node.name
        for prefix, node in nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )

"""Whether a test that a page cites exists."""

from __future__ import annotations

import ast
from functools import cache

from tests.conftest import CHECKOUT


def exists(citation: str) -> bool:
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

"""The tests that a page cites: whether they exist, and whether `bin/test` runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
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
    assert [name for name in names if not exists(name)] == [], shown
    return names


def exists(citation: str) -> bool:
    """Answer for `tests/FILE::TEST` or `tests/FILE::Class::TEST`."""
    path, _, name = citation.partition("::")
    return (CHECKOUT / path).is_file() and name in _tests(path)


def for_release_only(citation: str) -> bool:
    """Answer whether a test that exists runs with `--release` only: all its cases, its class or its file."""
    path, _, name = citation.partition("::")
    return _tests(path)[name]


@cache
def _tests(path: str) -> dict[str, bool]:
    """Return the tests in a file, those of classes as `Class::name`, and which run with `--release` only."""
    tree = ast.parse((CHECKOUT / path).read_text())
    named = _assigned(tree.body)
    found = {}
    groups: list[tuple[str, list[ast.stmt], list[ast.expr]]] = [("", tree.body, [])]
    for prefix, body, above in groups:
        marks = [*above, *(value for name, value in _assigned(body).items() if name == "pytestmark")]
        for node in body:
            if isinstance(node, ast.ClassDef):
                groups.append((f"{node.name}::", node.body, [*marks, *node.decorator_list]))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found[prefix + node.name] = any(
                    _marks(each, named) for each in [*marks, *node.decorator_list]
                )
    return found


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    single = (node for node in body if isinstance(node, ast.Assign))
    return {
        target.id: node.value for node in single for target in node.targets if isinstance(target, ast.Name)
    }


def _marks(mark: ast.expr, named: Mapping[str, ast.expr]) -> bool:
    """Answer whether a decorator or `pytestmark` leaves all cases to `--release`."""
    match mark:
        case ast.List(elts=several) | ast.Tuple(elts=several):
            return any(_marks(each, named) for each in several)
        case ast.Name(id=name):
            return name in named and _marks(named[name], named)
        case ast.Call(func=ast.Attribute(attr="parametrize"), args=[_, cases, *_]):
            return _all_marked(cases, named)
        case ast.Attribute(attr="release"):
            return True
    return False


def _all_marked(cases: ast.expr, named: Mapping[str, ast.expr]) -> bool:
    match cases:
        case ast.List(elts=several) | ast.Tuple(elts=several):
            return several != [] and all(_all_marked(each, named) for each in several)
        case ast.Starred(value=inner) | ast.ListComp(elt=inner) | ast.GeneratorExp(elt=inner):
            return _all_marked(inner, named)
        case ast.Name(id=name):
            return name in named and _all_marked(named[name], named)
        case ast.Call(func=ast.Name(id="for_release")):
            return True
        case ast.Call(func=ast.Attribute(attr="param"), keywords=keywords):
            return any(each.arg == "marks" and _marks(each.value, named) for each in keywords)
    return False

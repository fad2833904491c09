"""JSON as people keep it in their settings: comments and trailing commas are read, and their places known.

Pure: text in, values and places out. What changes such a text is in `json_edit`.
Standard library only.
"""

from __future__ import annotations

import json
import re
from typing import Literal, NamedTuple

DEEPEST = 100

_COMMENT = r"//[^\n]*|/\*.*?\*/"
_TRIVIA = re.compile(rf"(?:[ \t\r\n]+|{_COMMENT})*", re.DOTALL)
_DECODER = json.JSONDecoder()

Kind = Literal["object", "array", "scalar"]


class MalformedError(ValueError):
    """The text is not JSON; `line` counts from 1."""

    def __init__(self, problem: str, text: str, place: int) -> None:
        self.problem = problem
        self.line = text.count("\n", 0, place) + 1
        super().__init__(f"line {self.line}: {problem}")


class Item(NamedTuple):
    """A member of an object (with its `key`) or an element of an array.

    `start` is where it begins in the text; `comma` where the comma behind it stands, None if there is none.
    """

    start: int
    node: Node
    comma: int | None
    key: str | None = None


class Node(NamedTuple):
    """A value and its place: text[start:end]; `value` belongs to a scalar, `items` to the others."""

    kind: Kind
    start: int
    end: int
    value: object = None
    items: tuple[Item, ...] = ()

    def get(self, key: str) -> Node | None:
        """Return the member `key` of an object: the last of that name, as all readers of JSON do."""
        nodes = [item.node for item in self.items if item.key == key]
        return nodes[-1] if nodes else None

    def plain(self) -> object:
        """Return the value without the places."""
        if self.kind == "object":
            return {item.key: item.node.plain() for item in self.items}
        if self.kind == "array":
            return [item.node.plain() for item in self.items]
        return self.value


def parse(text: str) -> Node:
    """Return the one value in `text`. Raises MalformedError."""
    node = _value(text, _skip(text, 0), 0)
    rest = _skip(text, node.end)
    if rest != len(text):
        raise MalformedError("something stands behind the end", text, rest)
    return node


def ends_in_line_comment(trivia: str) -> bool:
    """Return whether the last comment in `trivia` (blanks and comments) goes on to the end of its line."""
    comments = re.findall(_COMMENT, trivia, re.DOTALL)
    return bool(comments) and comments[-1].startswith("//")


def _skip(text: str, place: int) -> int:
    """Return where the next token begins."""
    match = _TRIVIA.match(text, place)
    assert match is not None  # it matches nothing, too
    return match.end()


def _value(text: str, place: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise MalformedError("too deeply nested", text, place)
    if text.startswith("{", place):
        return _container("object", text, place, depth)
    if text.startswith("[", place):
        return _container("array", text, place, depth)
    return _scalar(text, place)


def _scalar(text: str, place: int) -> Node:
    try:
        value, end = _DECODER.raw_decode(text, place)
    except json.JSONDecodeError as error:
        raise MalformedError(error.msg, text, min(error.pos, len(text))) from error
    except ValueError as error:
        raise MalformedError("the number is too long", text, place) from error
    return Node("scalar", place, end, value)


def _container(kind: Literal["object", "array"], text: str, start: int, depth: int) -> Node:
    closer = "}" if kind == "object" else "]"
    items: list[Item] = []
    place = _skip(text, start + 1)
    while not text.startswith(closer, place):
        if items and items[-1].comma is None:
            raise MalformedError(f"a comma or {closer} is missing", text, min(place, len(text)))
        begin = place
        key, place = _key(text, place) if kind == "object" else (None, place)
        node = _value(text, place, depth + 1)
        place = _skip(text, node.end)
        comma = place if text.startswith(",", place) else None
        items.append(Item(begin, node, comma, key))
        if comma is not None:
            place = _skip(text, comma + 1)
    return Node(kind, start, place + 1, items=tuple(items))


def _key(text: str, place: int) -> tuple[str, int]:
    if not text.startswith('"', place):
        raise MalformedError('a name in "quotes" is missing', text, min(place, len(text)))
    name = _scalar(text, place)
    place = _skip(text, name.end)
    if not text.startswith(":", place):
        raise MalformedError("a colon is missing", text, min(place, len(text)))
    return str(name.value), _skip(text, place + 1)

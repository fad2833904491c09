"""Add to and take from a JSON text; whatever else stands there stays byte for byte.

Read where in a JSON text each value stands, too.
Pure: text in, text out. `remove` undoes `add`: order, comments, indentation and line breaks come back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

Path = Sequence[str | int]
UNIT = "  "
DEEPEST = 100
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_TRIVIA = re.compile(rf"(?:[ \t\r\n]+|{_COMMENT})*", re.DOTALL)
_DECODER = json.JSONDecoder()
Kind = Literal["object", "array", "scalar"]


def at(node: Node, path: Path) -> Node | None:
    """Return what lies at `path` (names and indexes) below `node`, None if there is nothing."""
    for step in path:
        child: Node | None
        if isinstance(step, str):
            child = node.get(step)
        else:
            child = node.items[step].node if step < len(node.items) else None
        if child is None:
            return None
        node = child
    return node


def add(text: str, path: Path, value: object, key: str | None = None) -> str:
    """Return `text` with `value` as the last member (`key`) or element of the container at `path`.

    Raises jsontext.MalformedError, and KeyError where there is no container.
    """
    root = parse(text)
    container = at(root, path)
    if container is None or container.kind == "scalar":
        raise KeyError(*path)
    style = _Style(text, root, container)
    end = len(text[: container.end - 1].rstrip(" \t\r\n"))
    last = container.items[-1] if container.items else None
    trailing = last is not None and last.comma is not None
    body = style.before + style.render(value, key) + ("," if trailing else "")
    tail = text[end:]
    if last is None and style.many_lines and "\n" not in text[end : container.end - 1]:
        tail = style.newline + style.outer + tail.lstrip(" \t")
    if last is None or trailing:
        return text[:end] + body + tail
    return text[: last.node.end] + "," + text[last.node.end : end] + body + tail


def replace(text: str, path: Path, value: object) -> str:
    """Return `text` with `value` in the place of what is at `path`, which must be there and not the root.

    Raises MalformedError.
    """
    root = parse(text)
    old, container = at(root, path), at(root, path[:-1])
    if old is None or container is None:
        raise KeyError(*path)
    return text[: old.start] + _Style(text, root, container).render(value) + text[old.end :]


def remove(text: str, path: Path) -> str:
    """Return `text` without the member or element at `path`, which must be there. Raises MalformedError."""
    container = at(parse(text), path[:-1])
    if container is None:
        raise KeyError(*path)
    index = _index(container, path[-1])
    item, previous = container.items[index], container.items[index - 1] if index else None
    start, end = _cut(text, container, previous, item)
    if item.comma is not None:
        text = text[: item.comma] + text[item.comma + 1 :]
    text = text[:start] + text[end:]
    if item.comma is None and previous is not None and previous.comma is not None:
        text = text[: previous.comma] + text[previous.comma + 1 :]
    return _without_hollow(text, container.start) if len(container.items) == 1 else text


def _index(container: Node, step: str | int) -> int:
    if isinstance(step, int):
        return step
    return max(n for n, item in enumerate(container.items) if item.key == step)


def _cut(text: str, container: Node, previous: Item | None, item: Item) -> tuple[int, int]:
    """Return from where to where the text of `item` goes, with the blanks before it if nothing needs them."""
    if previous is None:
        behind = container.start + 1
    else:
        behind = previous.node.end if previous.comma is None else previous.comma + 1
    start = len(text[: item.start].rstrip(" \t\r\n"))
    end = item.node.end
    follows = text[end:] if item.comma is None else text[end : item.comma] + text[item.comma + 1 :]
    # Without its line break a comment would swallow what comes behind the item.
    needed = ends_in_line_comment(text[behind : item.start])
    if needed and not follows.lstrip(" \t\r").startswith("\n"):
        start = item.start
    return max(start, behind), end


def _without_hollow(text: str, start: int) -> str:
    """Return `text` with nothing between the brackets at `start` if only blanks are there."""
    inner = text[start + 1 :]
    bare = inner.lstrip(" \t\r\n")
    return text[: start + 1] + bare if bare[:1] in ("}", "]") else text


class _Style:
    """How the text around `container` is laid out, and a new part of it is to be."""

    def __init__(self, text: str, root: Node, container: Node) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        one_line = "\n" not in text.strip() and bool(root.items)
        inner = text[container.start : container.end]
        self.many_lines = not one_line and ("\n" in inner or not container.items)
        self._colon, self._comma = (": ", ", ") if not one_line or '": ' in text else (":", ",")
        self._unit = _indent(text, root.items[0].start) if root.items else UNIT
        if not self._unit:
            self._unit = UNIT
        self.outer = _indent(text, container.start, whole_line=True)
        own = _indent(text, container.items[0].start) if container.items else ""
        self._inner = own or self.outer + self._unit
        if self.many_lines:
            self.before = self.newline + self._inner
        else:
            self.before = self._comma[1:] if container.items else ""

    def render(self, value: object, key: str | None = None) -> str:
        """Return `value`, as the member `key` if there is one, in lines that fit here."""
        name = "" if key is None else json.dumps(key, ensure_ascii=False) + self._colon
        if not self.many_lines:
            return name + json.dumps(value, ensure_ascii=False, separators=(self._comma, self._colon))
        lines = json.dumps(value, ensure_ascii=False, indent=self._unit).split("\n")
        return name + (self.newline + self._inner).join(lines)


def _indent(text: str, place: int, *, whole_line: bool = False) -> str:
    """Return the blanks before `place`; "" if more stands there, unless `whole_line` says otherwise."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    blanks = line[: len(line) - len(line.lstrip(" \t"))]
    return blanks if whole_line or blanks == line else ""


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

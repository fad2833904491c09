"""Read a Markdown check list as tasks.

    - [ ] Add rate limiting
      - check: `pytest -q tests/test_rate.py`
      - after: Implement user authentication
      - priority: P0
      Anything else below it is the description.
    - [ ] Documents
      - [ ] Say so in the API's page
        - check: `grep -q rate docs/api.md`
    - [x] Write the design

An item with items below it groups them: without a check it is no task, and what it says holds for them.
Every other line of the document (headings, text, code) is ignored.

It is read by indentation, not as CommonMark, whose parsers take `  - check: …` below `1. [ ] …` for a
list of its own (three blanks make it a part of the item): plans are written so, and the check would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness_lib.records import given

# The names that people write, and the field that each means; `-` and `_` count as a space.
KEYS = {word.replace("_", " "): known.typed.words[0] for known in given.FIELDS for word in known.typed.words}
REPEATABLE = frozenset(
    known.typed.words[0]
    for known in given.FIELDS
    if known.typed.words and (known.typed.repeats or known.kind.form in {"list", "record"})
)
# Fields that name one item; all others of a group count for the items below it.
OWN = frozenset({"id", "check", "hidden"})
# Before the name of an item, where it is the source of a task: other plans call none of theirs so.
BULLET = "- "

_TAB = 4
# The least further indentation of an item below another.
_BELOW = 2
# Longer words before a colon begin a sentence, and are no misspelt field.
_WORDS = 3
_ITEM = re.compile(r"^( *)(?:[-*+]|\d+[.)]) +\[([ xX])\](?: +(.*))?$")
_BULLET = re.compile(r"^ *(?:[-*+]|\d+[.)]) +(.*)$")
_KEYED = re.compile(r"^\**([A-Za-z][A-Za-z_ -]*?)\**:\**(?: +(.*))?$")
_FENCE = re.compile(r"^ *(```+|~~~+)")


def keys(items: list[Item]) -> list[str]:
    """Return what each item is called as the source of a task: its id or its title, as a bullet."""
    return list(unique([f"{BULLET}{item.first('id') or item.title}" for item in items]))


def field_of(word: str) -> str | None:
    """Return the field that `word` means; None if it means none."""
    return KEYS.get(re.sub("[-_]", " ", word.lower()))


@dataclass
class Item:
    """A task or a group of the list: its place, and the values of each field with their lines.

    `parent` is the item above it; `unknown` has words before a colon that name no field.
    """

    line: int
    title: str
    done: bool
    indent: int
    parent: Item | None = None
    has_items: bool = False
    fields: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    unknown: list[tuple[int, str]] = field(default_factory=list)

    @property
    def is_group(self) -> bool:
        """Return whether this item only groups others."""
        return self.has_items and "check" not in self.fields

    def ancestors(self) -> Iterator[Item]:
        """Yield the items above this one, the nearest first."""
        item = self.parent
        while item:
            yield item
            item = item.parent

    def first(self, name: str) -> str | None:
        """Return the first value of a field."""
        values = self.fields.get(name)
        return values[0][1] if values else None

    def line_of(self, name: str) -> int:
        """Return the line of a field, for an error message."""
        values = self.fields.get(name)
        return values[0][0] if values else self.line


@dataclass(frozen=True)
class Problem:
    """An error in a line."""

    line: int
    message: str


def parse(text: str) -> tuple[list[Item], list[Problem]]:
    """Return the tasks of a Markdown document, in its order, and its errors."""
    items: list[Item] = []
    current: Item | None = None
    for line, row, is_code in _rows(text):
        match = None if is_code else _ITEM.match(row)
        if match:
            title = (match[3] or "").strip()
            indent = len(match[1])
            current = Item(line, title, done=match[2] != " ", indent=indent, parent=_around(current, indent))
            items.append(current)
        elif row:
            current = _around(current, len(row) - len(row.lstrip()), by=1)
            if current:
                _add(current, line, row, is_code=is_code)
    problems = [problem for item in items for problem in _problems(item)]
    _group(items)
    return items, problems


def _around(item: Item | None, indent: int, by: int = _BELOW) -> Item | None:
    """Return the innermost of `item` and its ancestors that are at least `by` to the left of `indent`."""
    while item and indent < item.indent + by:
        item = item.parent
    return item


def _group(items: list[Item]) -> None:
    """Copy the fields of each group to the items below it that do not have them."""
    for item in items:
        if item.parent:
            item.parent.has_items = True
    # Parents come before their children, so a group has its own inherited fields when it is its turn.
    for item in items:
        if item.parent and item.parent.is_group:
            _inherit(item, item.parent)


def _inherit(item: Item, group: Item) -> None:
    for name, values in group.fields.items():
        if name in OWN:
            continue
        if name in REPEATABLE:
            item.fields[name] = [*values, *item.fields.get(name, ())]
        else:
            item.fields.setdefault(name, values)
    item.fields["description"] = [
        (group.line, f"Part of: {group.title}"),
        *item.fields.get("description", ()),
    ]


def _rows(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line number, line without trailing blanks, whether it is code in a fence)."""
    fence = ""
    for number, raw in enumerate(text.splitlines(), 1):
        row = raw.expandtabs(_TAB).rstrip()
        mark = _FENCE.match(row)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            yield number, row, True
        else:
            yield number, row, bool(fence)


def _add(item: Item, line: int, row: str, *, is_code: bool) -> None:
    bullet = None if is_code else _BULLET.match(row)
    keyed = None if is_code else _KEYED.match(bullet[1] if bullet else row.strip())
    name = field_of(keyed[1]) if keyed else None
    if keyed and name and bullet:
        item.fields.setdefault(name, []).append((line, _bare(keyed[2] or "")))
        return
    item.fields.setdefault("description", []).append((line, row.strip()))
    if keyed and len(keyed[1].split()) <= _WORDS:
        item.unknown.append((line, keyed[1]))


def _bare(value: str) -> str:
    """Return `value` without the pair of backticks that makes it code."""
    text = value.strip()
    ticks = re.match(r"^(`+)(.+)\1$", text)
    return ticks[2].strip() if ticks and ticks[1] not in ticks[2] else text


def _problems(item: Item) -> Iterator[Problem]:
    if not item.title:
        yield Problem(item.line, "a task needs a title")
    for name, values in item.fields.items():
        if len(values) > 1 and name not in REPEATABLE:
            yield Problem(values[1][0], f"{name} is given twice (before in line {values[0][0]})")
        yield from (Problem(line, f"{name} is empty") for line, value in values if not value)


def unique(keys: list[str]) -> Iterator[str]:
    """Yield each key; one that has been there before gets a number: `3`, `3(2)`."""
    seen: dict[str, int] = {}
    for key in keys:
        seen[key] = seen.get(key, 0) + 1
        yield key if seen[key] == 1 else f"{key}({seen[key]})"

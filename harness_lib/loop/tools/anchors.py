"""Anchors of lines, `N#HH`: a number and two letters made from the line; on what has changed they fail.

Bit for bit those of the original: its sessions hold them.
"""

from __future__ import annotations

import re

_LETTERS = "ZPMQVRWSNKTXJBYH"
_START, _FACTOR, _MIX, _BITS = 5381, 33, 2654435761, 0xFFFFFFFF
_ASCII = 127
_ANCHOR = re.compile(r"^(\d+)#([A-Z]{2})$")
_PREFIX = re.compile(r"^\d+#[ZPMQVRWSNKTXJBYH]{2}:")


def letters(line: str, number: int) -> str:
    """Return the two letters of `line`, which stands at `number`."""
    text = line.replace("\r", "").rstrip(" \t")
    value = _START
    for char in text:
        code = ord(char)
        value = (value * _FACTOR + (code if code <= _ASCII else 0)) & _BITS
    # Lines of brackets alone are told apart by where they stand.
    if not any(char.isascii() and char.isalnum() for char in text):
        value = (value + number * _MIX) & _BITS
    return _LETTERS[(value >> 4) & 15] + _LETTERS[value & 15]


def show(lines: list[str], first: int = 1) -> str:
    """Return `lines` with their anchors, the first of them at number `first`."""
    return "\n".join(f"{number}#{letters(line, number)}:{line}" for number, line in enumerate(lines, first))


def parse(text: object) -> tuple[int, str] | None:
    """Return number and letters of an anchor; None if it is none."""
    match = _ANCHOR.match(text.strip()) if isinstance(text, str) else None
    return (int(match[1]), match[2]) if match else None


def strip(line: str) -> str:
    """Return `line` without an anchor that a model has copied along."""
    return _PREFIX.sub("", line)

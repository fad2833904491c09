"""Text in the columns of a terminal."""

from __future__ import annotations

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

Fragments = StyleAndTextTuples


def last(text: str, width: int, count: int) -> list[str]:
    """Return the last `count` lines of `text`, broken at `width` columns."""
    rows: list[str] = []
    # No character is narrower than nothing: what is further back cannot be among them, or nearly never.
    for line in text[-2 * width * count :].rstrip("\n").split("\n"):
        rows += _broken(line.expandtabs(4), width)
    return rows[-count:] if text.strip() else []


def cut(text: str, width: int) -> str:
    """Return `text` in at most `width` columns."""
    (first, *more) = _broken(text, width)
    return f"{_broken(text, max(1, width - 1))[0]}…" if more else first


def _broken(line: str, width: int) -> list[str]:
    rows, columns = [""], 0
    for character in line:
        wide = get_cwidth(character)
        if columns + wide > max(2, width):
            rows.append("")
            columns = 0
        rows[-1] += character
        columns += wide
    return rows

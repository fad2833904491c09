"""The table in a page of Markdown, renewed by what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring import HEAD, Row


def renewed(page: str, rows: Sequence[Row], *, whole: bool) -> str:
    """Return `page` with `rows` in its table; `whole`: they are all there is, and others are out of date.

    Raises ValueError where the page has no such table.
    """
    lines = page.splitlines()
    if HEAD[0] not in lines:
        message = f"the page has no table that begins with {HEAD[0]!r}"
        raise ValueError(message)
    start = lines.index(HEAD[0]) + len(HEAD)
    end = next((at for at in range(start, len(lines)) if not lines[at].startswith("|")), len(lines))
    table = {} if whole else {_what(line): line for line in lines[start:end]}
    table.update({row.what: str(row).rstrip() for row in rows})
    return "\n".join([*lines[:start], *table.values(), *lines[end:]]) + "\n"


def _what(line: str) -> str:
    return line.split(" | ", maxsplit=1)[0].removeprefix("| ")

"""Take from a check's output what a person would read: what has failed and why, else both its ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness_lib.rules import runners
from harness_lib.rules.runners import Failed
from harness_lib.text import cut

LIMIT = 2000
ONE_LINE = 420
ROW_LENGTH = 300
LAST_ROWS = 2
CUT = "…"


def of(lines: Sequence[str], limit: int = LIMIT) -> str:
    """Return what is worth reading of `lines` (the plain text of a log) in at most `limit` characters.

    Names come first: where there are too many failures for all of their messages, messages are cut.
    """
    failed = runners.failures(lines)
    if not failed:
        return _ends(lines, limit)
    for rows in (runners.MESSAGE_LINES, 3, 1, 0):
        text = "\n".join(_failed_lines(failed, rows))
        if len(text) <= limit:
            return text
    return _counted(_failed_lines(failed, 0), limit, "\n")


def in_a_line(lines: Sequence[str]) -> str:
    """Return what is most worth reading of `lines`, without a line break."""
    failed = runners.failures(lines)
    if failed:
        return _counted([": ".join((each.name, *each.message[:1])) for each in failed], ONE_LINE, " / ")
    return " / ".join([line.strip() for line in lines if line.strip()][-LAST_ROWS:])


def _failed_lines(failed: Iterable[Failed], rows: int) -> list[str]:
    lines = []
    for each in failed:
        lines.append(cut(each.name, ROW_LENGTH))
        lines += [cut(f"  {row}", ROW_LENGTH) for row in each.message[:rows]]
        lines += [cut(f"  at {each.place}", ROW_LENGTH)] if each.place and rows else []
    return lines


def _counted(rows: Sequence[str], limit: int, between: str) -> str:
    """Return as many of `rows` as there is room for, and how many there are besides."""
    kept: list[str] = []
    room = limit - len(f"{CUT} and {len(rows)} more")
    for row in rows:
        room -= len(row) + len(between)
        if room < 0 and kept:
            return between.join([*kept, f"{CUT} and {len(rows) - len(kept)} more"])
        kept.append(row[:limit])
    return between.join(kept)


def _ends(lines: Sequence[str], limit: int) -> str:
    """Return the first and, more of them, the last lines."""
    rows = [cut(line, ROW_LENGTH) for line in lines if line.strip()]
    text = "\n".join(rows)
    if len(text) <= limit:
        return text
    first = _fitting(rows, limit // 3)
    last = _fitting(rows[::-1], limit - limit // 3 - len(CUT) - 2)
    return "\n".join([*first, CUT, *last[::-1]])


def _fitting(rows: Iterable[str], room: int) -> list[str]:
    kept = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    return kept

"""Read the output of test runners: the names of the tests that failed, and the lines that say why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from harness_lib.text import cut

LIMIT = 2000
ONE_LINE = 420
ROW_LENGTH = 300
LAST_ROWS = 2
# More failures nobody reads, and no runner prints longer lines.
MOST = 200
LINE_LENGTH = 2000
CUT = "…"
# At most so many lines are between the name of a test and its message. The end of a log has so many lines.
NEAR = 40
LAST = 30

Lines = Sequence[str]

# A line that names a failure; some have its message, too.
_NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:FAILED|ERROR) (?P<name>\S*\.py\b.*?)(?: - (?P<message>.*))?",  # pytest
        r"(?:FAIL|ERROR): (?P<name>\w+ \(.+\).*)",  # unittest
        r"  ● (?P<name>(?!Console\b).*)",  # jest
        r" FAIL  (?P<name>.*\S) *",  # vitest
        r" *--- FAIL: (?P<name>\S+) \([\d.]+s\)",  # go test
        r"(?:vet: )?(?P<name>\S+\.go:\d+:\d+): (?P<message>.*)",
        r"---- (?P<name>.*) stdout ----",  # cargo test
        r"(?P<message>error(?:\[E\d+\])?: .*)\n +--> (?P<name>\S+).*",
        r"(?P<name>\S.*?(?:\(\d+,\d+\)|:\d+:\d+))(?:: | - )error (?P<message>TS\d+: .*)",  # tsc
    )
)
# A line that says why.
_TELLING = re.compile(
    r"E  +\S|panic: |assert|called `|\s*(?:left|right|Expected|Received): |    expect\(|    E[A-Z]+: |[-+] \S"
    r"|    Cannot |    +\S+_test\.go:\d+: |(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\b|.*\berror\b"
)


class Failed(NamedTuple):
    """One failure: its name as its runner writes it, and the line that says why."""

    name: str
    message: str = ""


def failures(lines: Lines) -> list[Failed]:
    """Return the failures that any known runner reports in `lines` (plain text), each once, at most MOST."""
    bounded = [line[:LINE_LENGTH] for line in lines]
    found: dict[str, str] = {}
    for failed in islice(_named(bounded), MOST):
        found[failed.name] = found.get(failed.name) or failed.message
    return [Failed(name, message) for name, message in found.items()]


def _named(lines: Lines) -> Iterator[Failed]:
    for at, line in enumerate(lines):
        two = "\n".join(lines[at : at + 2])
        match = next(
            (found for each in _NAMES if (found := each.fullmatch(line) or each.fullmatch(two))), None
        )
        if match:
            near = (row.strip() for row in lines[at + 1 : at + NEAR] if _TELLING.match(row))
            yield Failed(match["name"], match.groupdict().get("message") or next(near, ""))


def of(lines: Lines, limit: int = LIMIT) -> str:
    """Return the useful part of `lines` (the plain text of a log) in at most `limit` characters.

    That is what failed, the lines that say why, and the last ones.
    """
    rows = [cut(line, ROW_LENGTH) for line in lines if line.strip()]
    failed = [cut(each.name, ROW_LENGTH) for each in failures(lines)]
    names = _counted(failed, limit // 3, "\n") if failed else ""
    why = [row for row in rows[:-LAST] if _TELLING.match(row)] if failed else []
    why = _fitting(dict.fromkeys(why), limit // 3)
    room = limit - len("\n".join((names, *why))) - len(CUT) - 2
    last = _fitting(reversed(rows[-LAST:] if failed else rows), room)[::-1]
    gap = [CUT] if last and len(last) < len(rows) else []
    return "\n".join([*([names] if names else []), *why, *gap, *last])


def in_a_line(lines: Lines) -> str:
    """Return the most useful part of `lines`, without a line break."""
    failed = failures(lines)
    if failed:
        return _counted([": ".join(filter(None, each)) for each in failed], ONE_LINE, " / ")
    return " / ".join([line.strip() for line in lines if line.strip()][-LAST_ROWS:])


def _counted(rows: Lines, limit: int, between: str) -> str:
    """Return as many of `rows` as fit, and how many more there are."""
    kept: list[str] = []
    room = limit - len(f"{CUT} and {len(rows)} more")
    for row in rows:
        room -= len(row) + len(between)
        if room < 0 and kept:
            return between.join([*kept, f"{CUT} and {len(rows) - len(kept)} more"])
        kept.append(row[:limit])
    return between.join(kept)


def _fitting(rows: Iterable[str], room: int) -> list[str]:
    kept = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    return kept

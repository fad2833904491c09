"""Read the output of test runners: the tests that failed, and the lines that the user would read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, islice, takewhile
from typing import NamedTuple

from harness_lib.text import cut

MESSAGE_LINES = 8
# More failures nobody reads, and no runner prints longer lines.
MOST = 200
LINE_LENGTH = 2000

Lines = Sequence[str]


class Failed(NamedTuple):
    """One failure: its name as its runner writes it, its message, and its place."""

    name: str
    message: tuple[str, ...] = ()
    place: str = ""


def failures(lines: Lines) -> list[Failed]:
    """Return the failures that any known runner reports in `lines` (plain text), each once, at most MOST."""
    bounded = [line[:LINE_LENGTH] for line in lines]
    reported = islice((failed for read in READERS for failed in read(bounded)), MOST)
    return list(dict.fromkeys(each._replace(message=_short(each.message)) for each in reported))


def _short(message: Lines) -> tuple[str, ...]:
    """Return the first lines of `message`, without their common indentation."""
    rows = [row.rstrip() for row in message if row.strip()]
    indent = min((len(row) - len(row.lstrip()) for row in rows), default=0)
    return tuple(row[indent:] for row in rows[:MESSAGE_LINES])


def _find(pattern: str, lines: Iterable[str]) -> str:
    """Return the first group of `pattern` in the first of `lines` that has it, "" if none has."""
    return next((match[1] for line in lines if (match := re.search(pattern, line))), "")


# -- Python

_PYTEST_SECTION = re.compile(r"_{2,} (?:ERROR at \w+ of |ERROR collecting )?(\S.*?) _{2,}")
_PYTEST_SUMMARY = re.compile(r"(?:FAILED|ERROR) (\S.*?)(?: - (.*))?")
_PYTEST_PLACE = r"^(\S+:\d+): [\w.]*$"
_BANNER = re.compile(r"([=!])\1{2,} .* \1{3,}")


def pytest(lines: Lines) -> Iterator[Failed]:
    """Yield the failures in pytest's short summary, with the `E` lines of its reports."""
    reports = _pytest_reports(lines)
    start = next((at for at, line in enumerate(lines) if "short test summary info ===" in line), None)
    if start is None:
        yield from (each for of_test in reports.values() for each in of_test)
        return
    for line in takewhile(lambda line: not _BANNER.fullmatch(line), lines[start + 1 :]):
        match = _PYTEST_SUMMARY.fullmatch(line)
        if match:
            name, message = match.groups()
            reported = reports.get(".".join(name.split("::")[1:]) or name)
            yield reported.pop(0)._replace(name=name) if reported else Failed(name, (message or "",))


def _pytest_reports(lines: Lines) -> dict[str, list[Failed]]:
    """Return the reports by their titles."""
    reports: dict[str, list[Failed]] = {}
    title, rows = "", list[str]()
    for line in (*lines, "=== end ==="):
        section = _PYTEST_SECTION.fullmatch(line)
        if section or _BANNER.fullmatch(line):
            message = tuple(row[1:] for row in rows if row.startswith("E  "))
            if title and message:
                reports.setdefault(title, []).append(Failed(title, message, _find(_PYTEST_PLACE, rows[::-1])))
            title, rows = (section[1] if section else ""), []
        rows.append(line)
    return reports


def unittest(lines: Lines) -> Iterator[Failed]:
    """Yield the failures that unittest reports, with the last place of each traceback and the exception."""
    double, single = "=" * 70, "-" * 70
    for at, line in enumerate(lines[:-1]):
        kind, _, name = lines[at + 1].partition(": ")
        if line == double and kind in ("FAIL", "ERROR"):
            report = list(takewhile(lambda row: row != double, lines[at + 2 :]))
            body = report[report.index(single) + 1 :] if single in report else report
            trace = list(takewhile(lambda row: row != single, body))
            last = max((n for n, row in enumerate(trace) if row.startswith('  File "')), default=0)
            message = dropwhile(lambda row: not row or row.startswith(" "), trace[last:])
            place = _find('File "(.*", line .*)', trace[last:]).replace('", line ', ":")
            yield Failed(name, tuple(message), place)


# -- JavaScript and TypeScript

_JEST_FRAME = re.compile(r"\s*>?\s*\d+ \|.*|\s+\|.*")
_TSC = re.compile(r"(\S.*?)(?:\((\d+),(\d+)\): |:(\d+):(\d+) - )error (TS\d+: .*)")


def jest(lines: Lines) -> Iterator[Failed]:
    """Yield the failures that jest marks with `●`, each with its file."""
    file = ""
    for at, line in enumerate(lines):
        if line.startswith(("FAIL ", "PASS ")):
            file = line[5:].split(" (")[0].strip().removeprefix("./")
        elif line.startswith("  ● ") and line != "  ● Console" and file:
            body = list(takewhile(lambda row: not row or row.startswith("    "), lines[at + 1 :]))
            trace = [row for row in body if row.startswith("      at ")]
            message = (row for row in body if not _JEST_FRAME.fullmatch(row) and row not in trace)
            place = _find(r"at (.*)", (row for row in trace if "node_modules" not in row))
            yield Failed(f"{file} \u203a {line[4:]}", tuple(message), place)


def vitest(lines: Lines) -> Iterator[Failed]:
    """Yield the failures that vitest marks with ` FAIL `."""
    for at, line in enumerate(lines):
        if line.startswith(" FAIL  "):
            body = list(takewhile(lambda row: not row.startswith(("⎯⎯", " FAIL  ")), lines[at + 1 :]))
            message = takewhile(lambda row: not row.startswith(" \u276f "), body)
            yield Failed(line[7:].strip(), tuple(message), _find("^ \u276f (.*)", body))


def tsc(lines: Lines) -> Iterator[Failed]:
    """Yield each error of the TypeScript compiler, in its plain and its pretty form."""
    for line in lines:
        match = _TSC.fullmatch(line)
        if match:
            file, row, column, pretty_row, pretty_column, message = match.groups()
            yield Failed(f"{file}:{row or pretty_row}:{column or pretty_column}", (message,))


# -- Go and Rust

_GO_FAIL = re.compile(r" *--- FAIL: (\S+) \([\d.]+s\)")
_GO_RUNS = re.compile(r"=== (?:RUN|CONT|NAME) +\S+")
_GO_MARK = re.compile(r" *(?:---|===) .*")
_GO_ERROR = re.compile(r"(?:vet: )?(\S+\.go:\d+(?::\d+)?): (.*)")
_RUST_ERROR = re.compile(r"error(?:\[E\d+\])?: .*")
_RUST_PANIC = re.compile(r"^thread '.*' (?:\(\d+\) )?panicked at (.*?):?$")


def go_test(lines: Lines) -> Iterator[Failed]:
    """Yield the failures that `go test` marks with `--- FAIL`, and packages that did not compile."""
    package = False
    for at, line in enumerate(lines):
        broken, failed = _GO_ERROR.fullmatch(line), _GO_FAIL.fullmatch(line)
        package = line.startswith("# ") or (package and bool(broken or line.startswith("    ")))
        if package and broken:
            yield Failed(broken[1], (broken[2],))
        elif failed:
            message = _go_message(lines, at, failed[1])
            # A test whose subtests have failed mostly has no message of its own.
            if message or not any(f"--- FAIL: {failed[1]}/" in row for row in lines):
                panicked = message[:1] and message[0].startswith("panic: ")
                place = _find(r"(\S+_test\.go:\d+)", lines[at:]) if panicked else ""
                yield Failed(failed[1], message, place)


def _go_message(lines: Lines, at: int, name: str) -> tuple[str, ...]:
    """Return the message below the failure at `at`, or with `-v` below the lines that name it as running."""
    if lines[at + 1 : at + 2] and lines[at + 1].startswith("panic: "):
        return (lines[at + 1],)
    starts = [n for n, row in enumerate(lines) if _GO_RUNS.fullmatch(row) and row.split()[2] == name]
    return tuple(row for start in (*starts, at) for row in takewhile(_is_go_text, lines[start + 1 :]))


def _is_go_text(row: str) -> bool:
    return row.startswith("    ") and not _GO_MARK.fullmatch(row)


def cargo(lines: Lines) -> Iterator[Failed]:
    """Yield the panics of `cargo test`, and the errors of a build."""
    for at, line in enumerate(lines):
        if line.startswith("---- ") and line.endswith(" stdout ----"):
            body = list(takewhile(lambda row: not row.startswith(("---- ", "failures:")), lines[at + 1 :]))
            panic = next((n + 1 for n, row in enumerate(body) if _RUST_PANIC.match(row)), 0)
            message = takewhile(lambda row: not row.startswith(("stack backtrace:", "note: ")), body[panic:])
            yield Failed(line[5:-12], tuple(message), _find(_RUST_PANIC.pattern, body))
        elif _RUST_ERROR.fullmatch(line):
            place = _find(r"^ *--> (\S+:\d+:\d+)", lines[at + 1 : at + 2])
            if place:
                yield Failed(place, (line, *_underlined(lines[at + 2 :])))


def _underlined(frame: Lines) -> list[str]:
    """Return the compiler's message below the marked place."""
    rows = takewhile(lambda row: "|" in row or not row.strip(), frame[:20])
    return [row.partition("^")[2].lstrip("^ ") for row in rows if "^" in row]


READERS = (pytest, unittest, jest, vitest, go_test, cargo, tsc)


LIMIT = 2000
ONE_LINE = 420
ROW_LENGTH = 300
LAST_ROWS = 2
CUT = "…"


def of(lines: Sequence[str], limit: int = LIMIT) -> str:
    """Return the useful part of `lines` (the plain text of a log) in at most `limit` characters.

    Names come first: with too many failures, messages are cut.
    """
    failed = failures(lines)
    if not failed:
        return _ends(lines, limit)
    for rows in (MESSAGE_LINES, 3, 1, 0):
        text = "\n".join(_failed_lines(failed, rows))
        if len(text) <= limit:
            return text
    return _counted(_failed_lines(failed, 0), limit, "\n")


def in_a_line(lines: Sequence[str]) -> str:
    """Return the most useful part of `lines`, without a line break."""
    failed = failures(lines)
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
    """Return as many of `rows` as fit, and how many more there are."""
    kept: list[str] = []
    room = limit - len(f"{CUT} and {len(rows)} more")
    for row in rows:
        room -= len(row) + len(between)
        if room < 0 and kept:
            return between.join([*kept, f"{CUT} and {len(rows) - len(kept)} more"])
        kept.append(row[:limit])
    return between.join(kept)


def _ends(lines: Sequence[str], limit: int) -> str:
    """Return the first lines and, more of them, the last ones."""
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

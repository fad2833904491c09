"""How the records are read: strictly, with the place of every mistake, or quickly where we wrote them.

Standard library only. `schemas/harness-tasks.schema.json` publishes the same contract; tests compare the two.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md, "On disk".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from harness_lib import timestamps
from harness_lib.records.fields import LARGEST, MOMENT_PATTERN, About, Kind, Record, columns
from harness_lib.state.writing import written
from harness_lib.task import NO_EXTRA, VERSION, SessionConfig

SHOWN = 60


class Shape:
    """The reader of an object that becomes a `record`.

    Null counts as absent where a field may be null, and an absent field gets its default.
    Unknown keys are kept in `extra`.
    """

    def __init__(self, record: Record) -> None:
        table = columns(record)
        self.record = record
        self.required = tuple(column.name for column in table if column.required)
        self.nullable = frozenset(column.name for column in table if column.null)
        self.readers = {column.name: reader(column.kind) for column in table}
        self.absent = {column.name: _absent(column) for column in table if _is_other_when_absent(column)}

    def __call__(self, value: Any, path: str, problems: Problems) -> Any:
        """Read an object."""
        if type(value) is not dict:
            problems.append(Problem(path, f"is {show(value)}, must be an object"))
            return None
        before = len(problems)
        prefix = f"{path}." if path else ""
        known, extra = self._fields(value, prefix, problems)
        problems.extend(Problem(prefix + key, "is missing") for key in self.required if key not in value)
        return self.record(**{**self.absent, **known}, extra=extra) if len(problems) == before else None

    def _fields(
        self, value: dict[str, Any], prefix: str, problems: Problems
    ) -> tuple[dict[str, Any], Mapping[str, object]]:
        known: dict[str, Any] = {}
        extra: dict[str, object] = {}
        for key, item in value.items():
            read = self.readers.get(key)
            if read is None:
                extra[key] = item
            elif item is not None or key not in self.nullable:
                known[key] = read(item, prefix + key, problems)
        return known, extra or NO_EXTRA


def _is_other_when_absent(column: About) -> bool:
    # A limit that a file does not name is no limit, whatever `init` writes into a new one.
    return column.absent is not None or column.kind.record is SessionConfig


def _absent(column: About) -> Any:
    return shape(SessionConfig)({}, "", []) if column.kind.record is SessionConfig else column.absent


@cache
def shape(record: Record) -> Shape:
    """Return the strict reader of a `record`."""
    return Shape(record)


@cache
def reader(kind: Kind) -> Reader:
    """Return the strict reader of a value of this `kind`."""
    read: Reader
    match kind.form:
        case "text":
            read = text(kind.most, kind.pattern, kind.expected, kind.least)
        case "integer":
            read = integer(kind.least, LARGEST if kind.most is None else kind.most)
        case "choice":
            read = choice(*kind.words)
        case "list":
            assert kind.of is not None
            read = items(reader(kind.of))
        case "record":
            assert kind.record is not None
            read = shape(kind.record)
        case "moment":
            read = moment
        case "number":
            read = amount
        case "flag":
            read = flag
        case "version":
            read = _version
    return read


def _version(value: Any, path: str, problems: Problems) -> Any:
    if type(value) in (int, float) and value > VERSION:
        problems.append(Problem(path, f"is {show(value)}: made by a newer harness, upgrade this one"))
    elif type(value) not in (int, float) or value != VERSION:
        problems.append(Problem(path, f"is {show(value)}, must be {VERSION}"))
    return VERSION


@cache
def trusted(record: Record) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a `record` of an object that `written` made, without checking it."""
    table = columns(record)
    known = frozenset(column.name for column in table)
    parts = [(column.name, part) for column in table if (part := _part(column)) is not None]

    def build(document: Mapping[str, Any]) -> Any:
        values = dict(document)
        for name, part in parts:
            if name in values:
                values[name] = part(values[name])
        if values.keys() <= known:
            return record(**values)
        extra = {key: values.pop(key) for key in document.keys() - known}
        return record(**values, extra=extra)

    return build


def _part(column: About) -> Callable[[Any], Any] | None:
    """Return what makes the field's value of its JSON; None where that is the value."""
    kind, default = column.kind, column.default
    if kind.form == "list":
        assert kind.of is not None
        return tuple if kind.of.record is None else _list_of(trusted(kind.of.record))
    if kind.record is None:
        return None
    build = trusted(kind.record)
    if default is None:
        return build
    # Most records inside of others hold their default, and values are frozen: they can share one object.
    usual = written(default)
    return lambda document: default if document == usual else build(document)


def _list_of(build: Callable[[Any], Any]) -> Callable[[list[Any]], tuple[Any, ...]]:
    return lambda documents: tuple([build(each) for each in documents]) if documents else ()


class Problem(NamedTuple):
    """Where in the document (`tasks[2].validation.command`), and what is wrong there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '(top level)'}: {self.message}"


Problems = list[Problem]


Reader = Callable[[Any, str, Problems], Any]


@cache
def _matches(pattern: str) -> Callable[[str], object]:
    """Return what tries `pattern`, made once it is needed: a list that we wrote last is read without any."""
    return re.compile(pattern).match


def show(value: object) -> str:
    """Return `value` for a message: as Python writes it, cut at 60 characters."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value[: SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def text(limit: int | None = None, pattern: str = "", expected: str = "", least: int = 0) -> Reader:
    """Read a string of `least` to `limit` characters; `expected` says in words what `pattern` asks for."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if type(value) is not str:
            problems.append(Problem(path, f"is {show(value)}, must be a string"))
        elif limit is not None and len(value) > limit:
            problems.append(Problem(path, f"has {len(value)} characters, at most {limit} are allowed"))
        elif len(value) < least:
            problems.append(Problem(path, "must not be empty"))
        elif pattern and not _matches(pattern)(value):
            problems.append(Problem(path, f"is {show(value)}, must be {expected}"))
        return value

    return read


def moment(value: Any, path: str, problems: Problems) -> Any:
    """Read an ISO-8601 moment; it is kept as it is written."""
    if type(value) is not str:
        problems.append(Problem(path, f"is {show(value)}, must be a string"))
    elif not is_moment(value):
        problems.append(Problem(path, f"is {show(value)}, must be a moment such as 2025-07-01T10:00:00Z"))
    return value


def is_moment(value: str) -> bool:
    """Say whether `value` is a moment that every supported Python reads alike."""
    if not _matches(MOMENT_PATTERN)(value):
        return False
    try:
        timestamps.parse(value)
    except (ValueError, OverflowError):
        return False
    return True


def integer(least: int, most: int = LARGEST) -> Reader:
    """Read a whole number; 3.0 is one, as JSON Schema says, `true` and "3" are not."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int:
            problems.append(Problem(path, f"is {show(value)}, must be a whole number"))
        elif not least <= value <= most:
            bound = f"at least {least}" if value < least else f"at most {most}"
            problems.append(Problem(path, f"is {show_number(value)}, must be {bound}"))
        return value

    return read


def amount(value: Any, path: str, problems: Problems) -> Any:
    """Read a number from 0; `true` and "3" are not numbers."""
    if type(value) not in (int, float):
        problems.append(Problem(path, f"is {show(value)}, must be a number"))
    elif not 0 <= value <= LARGEST:
        problems.append(Problem(path, f"must be from 0 to {LARGEST}"))
    return value


def show_number(value: int) -> str:
    """Return `value` in digits unless it has so many that Python refuses to write them."""
    return str(value) if abs(value) <= 10**SHOWN else "a number of more than 60 digits"


def flag(value: Any, path: str, problems: Problems) -> Any:
    """Read true or false."""
    if type(value) is not bool:
        problems.append(Problem(path, f"is {show(value)}, must be true or false"))
    return value


def choice(*allowed: str) -> Reader:
    """Read one of a few words."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if value not in allowed:
            problems.append(Problem(path, f"is {show(value)}, must be one of {', '.join(allowed)}"))
        return value

    return read


def items(reader: Reader) -> Reader:
    """Read a list into a tuple."""

    def read(value: Any, path: str, problems: Problems) -> Any:
        if type(value) is not list:
            problems.append(Problem(path, f"is {show(value)}, must be a list"))
            return ()
        return tuple([reader(item, f"{path}[{index}]", problems) for index, item in enumerate(value)])

    return read

"""How the records are read: strictly, with the place of every mistake, or quickly where we wrote them.

Standard library only. `schemas/harness-tasks.schema.json` publishes the same contract; tests compare the two.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md, "On disk".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from harness_lib.records.fields import LARGEST, Kind, Record
from harness_lib.records.table import Column, columns
from harness_lib.state.record import kinds
from harness_lib.state.record.kinds import Problem, Problems, Reader
from harness_lib.state.record.writing import written
from harness_lib.task import NO_EXTRA, VERSION, SessionConfig


class Shape:
    """The reader of an object that becomes a `record`.

    Null counts as absent where a field may be null, and an absent field gets its default.
    Unknown keys are kept in `extra`.
    """

    def __init__(self, record: Record) -> None:
        table = columns(record)
        self.record = record
        self.required = tuple(column.name for column in table if column.about.required)
        self.nullable = frozenset(column.name for column in table if column.about.null)
        self.readers = {column.name: reader(column.kind) for column in table}
        self.absent = {column.name: _absent(column) for column in table if _is_other_when_absent(column)}

    def __call__(self, value: Any, path: str, problems: Problems) -> Any:
        """Read an object."""
        if type(value) is not dict:
            problems.append(Problem(path, f"is {kinds.show(value)}, must be an object"))
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


def _is_other_when_absent(column: Column) -> bool:
    # A limit that a file does not name is no limit, whatever `init` writes into a new one.
    return column.about.absent is not None or column.kind.record is SessionConfig


def _absent(column: Column) -> Any:
    return shape(SessionConfig)({}, "", []) if column.kind.record is SessionConfig else column.about.absent


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
            read = kinds.text(kind.most, kind.pattern, kind.expected, kind.least)
        case "integer":
            read = kinds.integer(kind.least, LARGEST if kind.most is None else kind.most)
        case "choice":
            read = kinds.choice(*kind.words)
        case "list":
            assert kind.of is not None
            read = kinds.items(reader(kind.of))
        case "record":
            assert kind.record is not None
            read = shape(kind.record)
        case "moment":
            read = kinds.moment
        case "number":
            read = kinds.amount
        case "flag":
            read = kinds.flag
        case "version":
            read = _version
    return read


def _version(value: Any, path: str, problems: Problems) -> Any:
    if type(value) in (int, float) and value > VERSION:
        problems.append(Problem(path, f"is {kinds.show(value)}: made by a newer harness, upgrade this one"))
    elif type(value) not in (int, float) or value != VERSION:
        problems.append(Problem(path, f"is {kinds.show(value)}, must be {VERSION}"))
    return VERSION


@cache
def trusted(record: Record) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a `record` of an object that we wrote and nobody has touched since, unchecked."""
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


def _part(column: Column) -> Callable[[Any], Any] | None:
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

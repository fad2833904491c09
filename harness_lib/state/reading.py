"""Read and write the records: strictly, naming each mistake, or quickly where harness itself wrote them.

Standard library only. `schemas/harness-tasks.schema.json` publishes the same contract; tests compare the two.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md, "On disk".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from harness_lib import timestamps
from harness_lib.records.fields import LARGEST, MOMENT_PATTERN, About, Form, Kind, Record, columns
from harness_lib.task import NO_EXTRA, VERSION, SessionConfig, State, Task

SHOWN = 60
# Python refuses to write longer numbers.
_LONGEST_NUMBER = 10**SHOWN
NEWER = "made by a newer harness, upgrade this one"
WORDS = "must be one of"


class Problem(NamedTuple):
    """A place in the document (`tasks[2].validation.command`), and what is wrong there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '(top level)'}: {self.message}"


Problems = list[Problem]
Reader = Callable[[Kind, Any, str, Problems], Any]


class Shape:
    """The strict reader of an object that becomes a `record`.

    Null counts as absent where a field may be null, and an absent field gets its default.
    Unknown keys are kept in `extra`.
    """

    def __init__(self, record: Record) -> None:
        table = columns(record)
        self._record = record
        self._columns = {column.name: column for column in table}
        self._required = tuple(column.name for column in table if column.required)
        self._absent = {column.name: column.absent for column in table if column.absent is not None}
        # A limit that a file does not name is no limit, whatever `init` writes into a new one.
        for column in table:
            if column.kind.record is SessionConfig:
                self._absent[column.name] = shape(SessionConfig)({}, "", [])

    def __call__(self, value: Any, path: str, problems: Problems) -> Any:
        """Return the record; None, and at least one of `problems`, if the object is invalid."""
        if type(value) is not dict:
            problems.append(Problem(path, f"is {show(value)}, must be an object"))
            return None
        before = len(problems)
        prefix = f"{path}." if path else ""
        known: dict[str, Any] = {}
        extra: dict[str, object] = {}
        for key, item in value.items():
            column = self._columns.get(key)
            if not column:
                extra[key] = item
            elif item is not None or not column.null:
                known[key] = _READERS[column.kind.form](column.kind, item, prefix + key, problems)
        problems.extend(Problem(prefix + key, "is missing") for key in self._required if key not in value)
        if len(problems) != before:
            return None
        return self._record(**{**self._absent, **known}, extra=extra or NO_EXTRA)


# The strict reader of each record, made once.
shape = cache(Shape)


@cache
def trusted(record: Record) -> Callable[[Mapping[str, Any]], Any]:
    """Return what makes a `record` of an object that `written` made, without checking it."""
    table = columns(record)
    known = frozenset(column.name for column in table)
    parts = [(column.name, part) for column in table if (part := _part(column))]

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
    """Return what makes the field's value of its JSON; None if the JSON is the value."""
    kind, default = column.kind, column.default
    if kind.form == "list":
        assert kind.of is not None
        if not kind.of.record:
            return tuple
        build_each = trusted(kind.of.record)
        return lambda documents: tuple([build_each(each) for each in documents]) if documents else ()
    if not kind.record:
        return None
    build = trusted(kind.record)
    if default is None:
        return build
    # Most records inside of others hold their default, and values are frozen: they can share one object.
    usual = written(default)
    return lambda document: default if document == usual else build(document)


def show(value: object) -> str:
    """Return `value` for a message: as Python writes it, cut at 60 characters."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value[: SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def is_moment(value: str) -> bool:
    """Return whether `value` is a moment that every supported Python reads alike."""
    # Patterns are compiled once they are needed: a list that harness wrote is read without.
    if not re.match(MOMENT_PATTERN, value):
        return False
    try:
        timestamps.parse(value)
    except (ValueError, OverflowError):
        return False
    return True


def _text(kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    if type(value) is not str:
        problems.append(Problem(path, f"is {show(value)}, must be a string"))
    elif kind.most is not None and len(value) > kind.most:
        problems.append(Problem(path, f"has {len(value)} characters, at most {kind.most} are allowed"))
    elif len(value) < kind.least:
        problems.append(Problem(path, "must not be empty"))
    elif kind.form == "moment":
        if not is_moment(value):
            problems.append(Problem(path, f"is {show(value)}, must be a moment such as 2025-07-01T10:00:00Z"))
    elif kind.pattern and not re.match(kind.pattern, value):
        problems.append(Problem(path, f"is {show(value)}, must be {kind.expected}"))
    return value


def _integer(kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    """Read a whole number; 3.0 is one, as JSON Schema says, `true` and "3" are not."""
    most = LARGEST if kind.most is None else kind.most
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int:
        problems.append(Problem(path, f"is {show(value)}, must be a whole number"))
    elif not kind.least <= value <= most:
        bound = f"at least {kind.least}" if value < kind.least else f"at most {most}"
        digits = str(value) if abs(value) <= _LONGEST_NUMBER else "a number of more than 60 digits"
        problems.append(Problem(path, f"is {digits}, must be {bound}"))
    return value


def _amount(_kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    """Read a number from 0; `true` and "3" are not numbers."""
    if type(value) not in (int, float):
        problems.append(Problem(path, f"is {show(value)}, must be a number"))
    elif not 0 <= value <= LARGEST:
        problems.append(Problem(path, f"must be from 0 to {LARGEST}"))
    return value


def _flag(_kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    if type(value) is not bool:
        problems.append(Problem(path, f"is {show(value)}, must be true or false"))
    return value


def _choice(kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    if value not in kind.words:
        problems.append(Problem(path, f"is {show(value)}, {WORDS} {', '.join(kind.words)}"))
    return value


def _items(kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    """Read a list into a tuple."""
    if type(value) is not list:
        problems.append(Problem(path, f"is {show(value)}, must be a list"))
        return ()
    assert kind.of is not None
    each, read = kind.of, _READERS[kind.of.form]
    return tuple([read(each, item, f"{path}[{index}]", problems) for index, item in enumerate(value)])


def _object(kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    assert kind.record is not None
    return shape(kind.record)(value, path, problems)


def _version(_kind: Kind, value: Any, path: str, problems: Problems) -> Any:
    if type(value) in (int, float) and value > VERSION:
        problems.append(Problem(path, f"is {show(value)}: {NEWER}"))
    elif type(value) not in (int, float) or value != VERSION:
        problems.append(Problem(path, f"is {show(value)}, must be {VERSION}"))
    return VERSION


_READERS: Mapping[Form, Reader] = {
    "text": _text,
    "moment": _text,
    "integer": _integer,
    "number": _amount,
    "flag": _flag,
    "choice": _choice,
    "list": _items,
    "record": _object,
    "version": _version,
}


def encode(state: State) -> dict[str, Any]:
    """Return `state` as a JSON document."""
    document = encode_shell(state)
    document["tasks"] = [written(task) for task in state.tasks]
    return document


def encode_shell(state: State) -> dict[str, Any]:
    """Return the document of `state` without its tasks."""
    return written(state._replace(tasks=()))


def written(record: Any) -> dict[str, Any]:
    """Return a record as a JSON object: fields that are always written, then others that are not default."""
    build: Record = type(record)
    document: dict[str, Any] = {}
    for name, part, default, always in _plan(build):
        value = getattr(record, name)
        if always or value != default:
            document[name] = value if not part else part(value)
    document.update(record.extra)
    return document


Part = Callable[[Any], Any]


@cache
def _plan(record: Record) -> tuple[tuple[str, Part | None, Any, bool], ...]:
    """Return name, encoder, default, and whether it is always written, of each field of `record`.

    The encoder is None if the value is JSON already. Fields that are always written come first.
    """
    rows = []
    for each in columns(record):
        part: Part | None = None
        if each.kind.form == "record":
            part = written
        elif each.kind.form == "list":
            assert each.kind.of is not None
            part = list if not each.kind.of.record else lambda values: [written(value) for value in values]
        rows.append((each.name, part, each.default, each.always))
    return tuple(sorted(rows, key=lambda row: not row[3]))


_inline = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False).encode
_BETWEEN = ",\n    "
_NONE = '\n  "tasks": []'
_OPENING = '\n  "tasks": [\n    '
_CLOSING = "\n  ]"


def task_text(task: Task) -> str:
    """Return the text of a task: each field on a line of its own, its value inline."""
    return _write_object(written(task), "      ")


def render(state: State, texts: Sequence[str] | None = None) -> str:
    """Return `state` as the text of the file; `texts` are the texts of its tasks if they are known."""
    texts = list(map(task_text, state.tasks)) if texts is None else texts
    shell = _write_object(encode_shell(state), "  ") + "\n"
    if not texts:
        return shell
    # Joined once: a list of thousands of tasks has megabytes.
    before, _, after = shell.partition(_NONE)
    parts = list(texts)
    parts[0] = before + _OPENING + parts[0]
    parts[-1] += _CLOSING + after
    return _BETWEEN.join(parts)


def cut(text: str) -> tuple[str, list[str]]:
    """Split a text of `render` into the document without its tasks, and the text of each task."""
    # `render` writes no raw line break inside a string, so these separators are only around tasks.
    before, opening, rest = text.partition(_OPENING)
    if not opening:
        return text, []
    # From the end, which is near: a search from the front takes as long as all the rest.
    inside, closing, after = rest.rpartition(_CLOSING)
    tasks = inside.split(_BETWEEN + "{")
    tasks[1:] = ["{" + each for each in tasks[1:]]
    return before + opening + closing + after, tasks


def _write_object(document: Mapping[str, Any], indent: str) -> str:
    lines = [f"{encode_basestring(key)}: {_value(item)}" for key, item in document.items()]
    text = f"{{\n{indent}" + f",\n{indent}".join(lines) + f"\n{indent[2:]}}}"
    # Half of a surrogate pair is legal in JSON, but only escaped: UTF-8 cannot encode it.
    return text.encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> str:
    # The common types need no encoder, which would take ten times as long.
    if type(value) is str:
        return encode_basestring(value)
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    return _inline(value) if value else _EMPTY.get(type(value)) or _inline(value)


_EMPTY = {list: "[]", dict: "{}", bool: "false"}

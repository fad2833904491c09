"""Encode a list as the text of harness-tasks.json: the protocol's fields, then others that are not default.

Standard library only.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md, "On disk".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any

from harness_lib.records.fields import Record, columns
from harness_lib.task import State, Task

NO_BLOCKS: Mapping[int, str] = MappingProxyType({})


def encode(state: State) -> dict[str, Any]:
    """Return `state` as a JSON document."""
    document = encode_shell(state)
    document["tasks"] = [encode_task(task) for task in state.tasks]
    return document


def encode_shell(state: State) -> dict[str, Any]:
    """Return the document of `state` without its tasks."""
    return written(state._replace(tasks=()))


def encode_sessions(state: State) -> list[dict[str, Any]] | None:
    """Return the open sessions as in the document; None for a list of the legacy protocol."""
    return None if state.sessions is None else [written(session) for session in state.sessions]


def encode_task(task: Task) -> dict[str, Any]:
    """Return `task` as in the list's document."""
    return written(task)


def written(record: Any) -> dict[str, Any]:
    """Return a record as a JSON object: fields that are always written, then others that are not default."""
    build: Record = type(record)
    document: dict[str, Any] = {}
    for name, part, default, always in _plan(build):
        value = getattr(record, name)
        if always or value != default:
            document[name] = value if part is None else part(value)
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
            part = (
                list if each.kind.of.record is None else lambda values: [written(value) for value in values]
            )
        rows.append((each.name, part, each.default, each.always))
    return tuple(sorted(rows, key=lambda row: not row[3]))


_inline = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False).encode
_BETWEEN = ",\n    "
_NONE = '\n  "tasks": []'
_OPENING = '\n  "tasks": [\n    '
_CLOSING = "\n  ]"


def task_texts(tasks: Sequence[Task], reuse: Mapping[int, str] = NO_BLOCKS) -> list[str]:
    """Return the text of each task: each field on a line of its own, its value inline.

    `reuse` maps `id(task)` to its text in the file that it was read from (see `cut`), so that unchanged tasks
    are not encoded again. The caller keeps those tasks alive, as their ids could be reused.
    """
    known = map(reuse.get, map(id, tasks))
    return [text or _object(encode_task(task), "      ") for text, task in zip(known, tasks, strict=True)]


def render(state: State, texts: Sequence[str] | None = None) -> str:
    """Return `state` as the text of the file; `texts` are the texts of its tasks if they are known."""
    texts = task_texts(state.tasks) if texts is None else texts
    shell = _object(encode_shell(state), "  ") + "\n"
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
    inside, closing, after = rest.partition(_CLOSING)
    tasks = inside.split(_BETWEEN + "{")
    tasks[1:] = ["{" + each for each in tasks[1:]]
    return before + opening + closing + after, tasks


def _object(document: Mapping[str, Any], indent: str) -> str:
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

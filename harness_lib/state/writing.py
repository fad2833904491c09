"""A list as the text of harness-tasks.json: the protocol's fields, then ours where they say something.

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

from harness_lib.records.fields import Kind, Record, columns
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
    """Return a record as a JSON object: what is always written, then what says more than its default."""
    build: Record = type(record)
    always, quiet = _plan(build)
    document: dict[str, Any] = {}
    for name, part in always:
        value = getattr(record, name)
        document[name] = value if part is None else part(value)
    for name, part, default in quiet:
        value = getattr(record, name)
        if value != default:
            document[name] = value if part is None else part(value)
    document.update(record.extra)
    return document


Part = Callable[[Any], Any]


@cache
def _plan(
    record: Record,
) -> tuple[tuple[tuple[str, Part | None], ...], tuple[tuple[str, Part | None, Any], ...]]:
    """Return how each field of `record` is written: those that always are, and those with a default."""
    table = columns(record)
    return (
        tuple((each.name, _part(each.kind)) for each in table if each.always),
        tuple((each.name, _part(each.kind), each.default) for each in table if not each.always),
    )


def _part(kind: Kind) -> Part | None:
    """Return what makes JSON of a value of this kind; None where it is JSON already."""
    if kind.form == "record":
        return written
    if kind.form != "list":
        return None
    assert kind.of is not None
    return list if kind.of.record is None else lambda values: [written(value) for value in values]


_inline = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False).encode
_BETWEEN = ",\n    "
_NONE = '\n  "tasks": []'
_OPENING = '\n  "tasks": [\n    '
_CLOSING = "\n  ]"


def task_texts(tasks: Sequence[Task], reuse: Mapping[int, str] = NO_BLOCKS) -> list[str]:
    """Return the text of each task: each field on a line of its own, its value inline.

    `reuse` maps `id(task)` to the text it had in the file it was read from (see `cut`), so that what did
    not change is not written anew. The caller keeps those tasks alive, else others may get their id.
    """
    known = map(reuse.get, map(id, tasks))
    return [text or _object(encode_task(task), "      ") for text, task in zip(known, tasks, strict=True)]


def render(state: State, texts: Sequence[str] | None = None) -> str:
    """Return `state` as the text of the file; `texts` are those of its tasks, where they are known."""
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
    """Return what `render` made in two parts: the document without its tasks, and the text of each task."""
    # What `render` writes has no raw line break inside a string, so these marks are only around tasks.
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
    # Half of a surrogate pair is a legal JSON string, but only when escaped: UTF-8 cannot hold it.
    return text.encode("utf-8", "backslashreplace").decode()


def _value(value: Any) -> str:
    # The common kinds are answered without setting up an encoder, which costs ten times as much.
    if type(value) is str:
        return encode_basestring(value)
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    return _inline(value) if value else _EMPTY.get(type(value)) or _inline(value)


_EMPTY = {list: "[]", dict: "{}", bool: "false"}

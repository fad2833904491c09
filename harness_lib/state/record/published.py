"""The JSON Schema of harness-tasks.json, as the records say it.

`python -m harness_lib.state.record` writes it to `schemas/`, where other programs read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness_lib.records.fields import COMMAND, ID, MOMENT, PATH, REVISION, Form, Kind, Record
from harness_lib.records.table import Column, columns
from harness_lib.task import (
    VERSION,
    Attempt,
    Checkpoint,
    Gate,
    Handback,
    Intent,
    Interruption,
    OnFailure,
    Recheck,
    Session,
    State,
    Task,
    Validation,
)

_TEXTS = {
    ID: "Names the task in commands, logs and dependencies: no spaces, brackets or slashes, not beginning "
    "with a dot or a dash.",
    MOMENT: "ISO-8601; without an offset it is UTC. Written as 2025-07-01T10:00:00Z.",
    COMMAND: "A line for `sh -c`.",
    PATH: "A path of this machine.",
    REVISION: "The name of a git object or ref; never an option.",
}
_TYPES: Mapping[Form, str] = {
    "text": "string",
    "moment": "string",
    "integer": "integer",
    "number": "number",
    "flag": "boolean",
    "choice": "string",
    "list": "array",
    "record": "object",
    "version": "number",
}
_WHOLE = (
    f"A task list, version {VERSION}. Unknown keys are allowed everywhere and survive every write. "
    "What no schema can say: ids are unique, and depends_on names tasks of the list."
)
# Each with its name in the schema; null is said where one is used, but for those that may be absent.
_RECORDS: tuple[tuple[str, Record, bool], ...] = (
    ("task", Task, False),
    ("validation", Validation, True),
    ("on_failure", OnFailure, True),
    ("checkpoint", Checkpoint, False),
    ("gate", Gate, True),
    ("intent", Intent, True),
    ("handback", Handback, True),
    ("interruption", Interruption, True),
    ("recheck", Recheck, True),
    ("attempt", Attempt, False),
    ("session", Session, False),
)


def schema() -> dict[str, Any]:
    """Return the schema of the whole list."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:harness:tasks:{VERSION}",
        "title": "harness-tasks.json",
        "description": _WHOLE,
        **_object(State),
        "$defs": {
            **{
                kind.definition: {"description": means, **_text(kind, null=kind is not ID)}
                for kind, means in _TEXTS.items()
            },
            **{
                name: {"description": _first_line(record), **_object(record, null=null)}
                for name, record, null in _RECORDS
            },
        },
    }


def _first_line(record: Record) -> str:
    return (record.__doc__ or "").partition("\n")[0]


def _object(record: Record, *, null: bool = False) -> dict[str, Any]:
    required = [column.name for column in columns(record) if column.about.required]
    return {
        "type": ["object", "null"] if null else "object",
        **({"required": required} if required else {}),
        "properties": {column.name: _field(column) for column in columns(record)},
        "additionalProperties": True,
    }


def _field(column: Column) -> dict[str, Any]:
    about = column.about
    schema = {"description": about.means, **_value(column.kind, null=about.null)}
    default: Any = column.default if about.absent is None else about.absent
    if about.required or default is None or column.kind.form == "record":
        return schema
    return {**schema, "default": list(default) if column.kind.form == "list" else default}


def _value(kind: Kind, *, null: bool) -> dict[str, Any]:
    """Return what a value of this kind must be; `null`: or null."""
    if kind.definition:
        ref = {"$ref": f"#/$defs/{kind.definition}"}
        # A text's definition may be null, but for that of an id.
        return ref if null or kind.form == "record" or kind is ID else {**ref, "type": "string"}
    if kind.record is not None:
        return _object(kind.record, null=null)
    schema = _text(kind, null=null)
    if kind.words:
        schema["enum"] = [*kind.words, *([None] if null else [])]
    if kind.of is not None:
        schema["items"] = _value(kind.of, null=False)
    if kind.form in {"integer", "number"}:
        schema |= {"minimum": kind.least, "maximum": kind.most}
    if kind.form == "version":
        schema["const"] = VERSION
    return schema


def _text(kind: Kind, *, null: bool) -> dict[str, Any]:
    """Return the type, and what a text must be."""
    schema: dict[str, Any] = {"type": [_TYPES[kind.form], "null"] if null else _TYPES[kind.form]}
    if kind.form not in {"text", "moment"}:
        return schema
    bounds = {"minLength": kind.least or None, "maxLength": kind.most, "pattern": kind.pattern or None}
    schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    return {**schema, "format": "harness-moment"} if kind.form == "moment" else schema

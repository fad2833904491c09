"""Write what other people read of the records: the JSON Schema of the list and the page of its fields.

Run: python -m docs.fields, which writes both; a test compares them with the records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness_lib.records.fields import COMMAND, ID, MOMENT, PATH, REVISION, About, Form, Kind, Record, columns
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
    SessionConfig,
    State,
    Task,
    Validation,
)

CHECKOUT = Path(__file__).resolve().parents[1]

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
_OPENING = """\
# The fields of harness-tasks.json

Written by `python -m docs.fields`; change `harness_lib/records/` instead.
[schemas/harness-tasks.schema.json](../schemas/harness-tasks.schema.json) says the same to programs.

Keys that are not named here are kept, at every level.
A field that holds no more than its default may be left out, and null says the same where it may stand.
The user gives some of them, by an option of `harness add` and `harness edit` or in an imported file.
In a check list that is a line such as `- check: …`, in JSON the field by its own name.
"""
_TITLES: tuple[tuple[str, Record], ...] = (
    ("The list", State),
    ("`session_config`", SessionConfig),
    ("A task", Task),
    ("`validation`", Validation),
    ("`on_failure`", OnFailure),
    ("One of `checkpoints`", Checkpoint),
    ("One of `attempt_log`", Attempt),
    ("`gate`", Gate),
    ("`intent`", Intent),
    ("`handback`", Handback),
    ("`interrupted`", Interruption),
    ("`recheck`", Recheck),
    ("One of `sessions`", Session),
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
    required = [column.name for column in columns(record) if column.required]
    return {
        "type": ["object", "null"] if null else "object",
        **({"required": required} if required else {}),
        "properties": {column.name: _field(column) for column in columns(record)},
        "additionalProperties": True,
    }


def _field(column: About) -> dict[str, Any]:
    schema = {"description": column.means, **_value(column.kind, null=bool(column.null))}
    default: Any = column.default if column.absent is None else column.absent
    if column.required or default is None or column.kind.form == "record":
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


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_OPENING, *(line for title, record in _TITLES for line in _section(title, record))])


def _section(title: str, record: Record) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield (record.__doc__ or "").partition("\n")[0]
    yield ""
    typed = any(column.typed for column in columns(record))
    yield "| field | holds | default | meaning |" + (" how the user gives it |" if typed else "")
    yield "|---|---|---|---|" + ("---|" if typed else "")
    for column in columns(record):
        cells = [f"`{column.name}`", holds(column.kind), _default(column), column.means]
        yield "| " + " | ".join([*cells, *([_typed(column)] if typed else [])]) + " |"
    yield ""


def holds(kind: Kind) -> str:
    """Return in a few words what a value of this kind is."""
    words: str
    match kind.form:
        case "text":
            most = "" if kind.most is None else f", at most {kind.most} characters"
            words = f"{kind.definition or 'text'}{most}"
        case "integer":
            words = f"whole number from {kind.least}"
        case "number":
            words = f"number from {kind.least}"
        case "choice":
            words = ", ".join(f"`{word}`" for word in kind.words)
        case "list":
            assert kind.of is not None
            words = f"list of: {holds(kind.of)}"
        case "record":
            words = f"object {kind.definition}".strip()
        case "flag":
            words = "true or false"
        case "moment":
            words = "moment"
        case "version":
            words = "number"
    return words


def _default(column: About) -> str:
    default = column.default if column.absent is None else column.absent
    if column.required:
        return "must be there"
    if default is None or column.kind.form == "record":
        return ""
    return f"`{json.dumps(default)}`"


def _typed(column: About) -> str:
    if column.typed is None:
        return ""
    words = [f"`{word}:`" for word in column.typed.words]
    return ", ".join([*([f"`{column.typed.option}`"] if column.typed.option else []), *words])


def texts() -> Mapping[str, str]:
    """Return what is written where, below the checkout."""
    return {
        "schemas/harness-tasks.schema.json": json.dumps(schema(), indent=2) + "\n",
        "docs/fields.md": page(),
    }


def main() -> None:
    """Write every file."""
    for name, text in texts().items():
        (CHECKOUT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

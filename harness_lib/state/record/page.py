"""The reference page of harness-tasks.json: every field, what it holds, what it means and how it is typed.

`python -m harness_lib.state.record` writes it to `docs/fields.md`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness_lib.records.fields import Kind, Record
from harness_lib.records.table import Column, columns
from harness_lib.task import (
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

_OPENING = """\
# The fields of harness-tasks.json

Written by `python -m harness_lib.state.record`; change `harness_lib/records/` instead.
[schemas/harness-tasks.schema.json](../schemas/harness-tasks.schema.json) says the same to programs.

Keys that are not named here are kept, at every level.
A field that holds no more than its default may be left out, and null says the same where it may stand.
A person gives some of them, by an option of `harness add` and `harness edit` or in an imported file.
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


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_OPENING, *(line for title, record in _TITLES for line in _section(title, record))])


def _section(title: str, record: Record) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield (record.__doc__ or "").partition("\n")[0]
    yield ""
    typed = any(column.typed for column in columns(record))
    yield "| field | holds | default | meaning |" + (" how a person gives it |" if typed else "")
    yield "|---|---|---|---|" + ("---|" if typed else "")
    for column in columns(record):
        cells = [f"`{column.name}`", holds(column.kind), _default(column), column.about.means]
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


def _default(column: Column) -> str:
    default = column.default if column.about.absent is None else column.about.absent
    if column.about.required:
        return "must be there"
    if default is None or column.kind.form == "record":
        return ""
    return f"`{json.dumps(default)}`"


def _typed(column: Column) -> str:
    if column.typed is None:
        return ""
    words = [f"`{word}:`" for word in column.typed.words]
    return ", ".join([*([f"`{column.typed.option}`"] if column.typed.option else []), *words])

"""A task as the columns of its row, and back: each field from the column of whoever may write it."""

from __future__ import annotations

import json
import struct
from typing import Any

from harness_lib import sha256, timestamps
from harness_lib.rules import graph, rechecks, selection
from harness_lib.state import codec, reading
from harness_lib.state.api import TaskCommands
from harness_lib.state.reading import Problem
from harness_lib.task import Task

_LONG_ID = 200
# Columns that only authors of a list may change, and workers, too. All but the texts are what a task is found
# and counted by. A new field that runs as a command needs a column of its own.
OF_AUTHORS = {
    "brief": "text",
    "validation": "text",
    "on_failure": "text",
    "sort_key": "bytea",
    "priority": "smallint",
    "runs": "bigint",
}
OF_WORKERS = {
    "fence": "bigint",
    "document": "text",
    "status": "text",
    "open": "boolean",
    "retry": "boolean",
    "since": "float8",
    "done": "boolean",
    "dead": "boolean",
    "doubted": "boolean",
    "unproven": "boolean",
    "halted": "boolean",
    "red": "boolean",
    "noted": "boolean",
    "ending": "boolean",
    "completed_at": "text",
    "worker": "text",
    "lease": "timestamptz",
    "attempts": "bigint",
    "checkpoints": "int",
    "proof": "bigint",
}
TYPES = OF_AUTHORS | OF_WORKERS
_COMMANDS = ("validation", "on_failure")
# What says all of a task.
TEXTS = ("document", "brief", *_COMMANDS)
_BRIEF = ("id", "title", "priority", "depends_on", "max_attempts", "description", "source", "repairs")
_AUTHORS = frozenset((*_COMMANDS, *_BRIEF))
_WORKERS = frozenset(Task._fields) - _AUTHORS


def of(task: Task) -> dict[str, Any]:
    """Return the values of `TYPES` for a task that keeps the contract."""
    retry, dead = task.status == "failed", selection.is_permanent(task)
    is_open = task.halt is None and (task.status == "pending" or (retry and not dead))
    since = timestamps.parse(task.failed_at).timestamp() if retry and task.failed_at else float("-inf")
    lease = task.lease_expires_at
    return {
        "fence": task.fence,
        **texts_of(task),
        "sort_key": sort_key(task.id),
        "status": task.status,
        "open": is_open,
        "retry": retry,
        "priority": int(task.priority[1:]),
        "since": since,
        "done": task.is_done,
        "dead": dead,
        "doubted": task.status == "completed" and task.unproven,
        "unproven": task.unproven,
        "halted": task.halt is not None and task.status != "completed",
        "red": rechecks.is_red(task),
        "noted": bool(task.notes),
        "ending": task.intent is not None,
        "completed_at": task.completed_at or "",
        "worker": None if task.claimed_by is None else text_key(task.claimed_by),
        "lease": None if lease is None else timestamps.parse(lease),
        "attempts": task.attempts,
        "checkpoints": len(task.checkpoints),
        "runs": TaskCommands.number(task),
        "proof": rechecks.proof(task, rechecks.passed_on(task)),
    }


def texts_of(task: Task) -> dict[str, str]:
    """Return the columns that say all of a task. Unknown keys are in two: those of the brief count."""
    # ASCII: NUL and half surrogates, which a title may have, stay escapes, and PostgreSQL takes no others.
    document = reading.written(task)
    # Sorted: equal commands are equal texts.
    texts = {name: json.dumps(document.pop(name), sort_keys=True) for name in _COMMANDS}
    brief = {name: document.pop(name) for name in _BRIEF if name in document}
    return {**texts, "brief": json.dumps(brief | dict(task.extra)), "document": json.dumps(document)}


def is_rewritten(old: Task, new: Task) -> bool:
    """Return whether only an author may make `new` out of `old`."""
    before, after = texts_of(old), texts_of(new)
    return any(before[name] != after[name] for name in ("brief", *_COMMANDS))


def decoded(document: str, brief: str, validation: str, on_failure: str, *, name: str = "") -> Task:
    """Return the task of a row, whose key is `name`, with each field from its own column.

    Raises ContractError.
    """
    row = f"task {name}".strip()
    theirs, mine = parsed(document, row), parsed(brief, row)
    whole = {key: value for key, value in theirs.items() if key not in _AUTHORS}
    whole |= {key: value for key, value in mine.items() if key not in _WORKERS}
    whole |= {"validation": parsed(validation, row), "on_failure": parsed(on_failure, row)}
    task = codec.decode_task(whole, row)
    return task if name in ("", text_key(task.id)) else task._replace(id=name)


def parsed(text: str, row: str) -> dict[str, Any]:
    """Return the object that `text` of the row called `row` says. Raises ContractError."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise codec.ContractError([Problem("", f"is no object: {error}")], row) from error
    if type(document) is not dict:
        raise codec.ContractError([Problem("", f"is {reading.show(document)}, must be an object")], row)
    return document


def sort_key(task_id: str) -> bytes:
    """Return bytes that are in the order of `graph.id_key`."""
    chunks, whole = graph.id_key(task_id)
    parts = [
        _raw(text).replace(b"\0", b"\0\xff") + b"\0\1" + struct.pack(">I", length) + digits.encode()
        for text, length, digits in chunks
    ]
    return b"".join(parts) + _raw(whole)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def text_key(text: str) -> str:
    """Return `text` for a column that is indexed: no NUL, no half surrogate, not long."""
    key = json.dumps(text)[1:-1]
    return key if len(key) <= _LONG_ID else sha256.digest(key.encode())

"""A list as the text of harness-tasks.json: the protocol's fields, then ours where they say something.

Standard library only.
Source: docs/protocol.md, "Progress Persistence"; docs/design.md, "On disk".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any

from harness_lib.task import (
    Attempt,
    Checkpoint,
    Gate,
    Handback,
    Intent,
    Interruption,
    Session,
    SessionConfig,
    State,
    Task,
    Validation,
)

NO_BLOCKS: Mapping[int, str] = MappingProxyType({})


def encode(state: State) -> dict[str, Any]:
    """Return `state` as a JSON document."""
    document = encode_shell(state)
    document["tasks"] = [encode_task(task) for task in state.tasks]
    return document


def encode_shell(state: State) -> dict[str, Any]:
    """Return the document of `state` without its tasks."""
    document: dict[str, Any] = {
        "version": state.version,
        "created": state.created,
        "session_config": _encode_config(state.session_config),
        "tasks": [],
        "session_count": state.session_count,
        "last_session": state.last_session,
    }
    sessions = encode_sessions(state)
    if sessions is not None:
        document["sessions"] = sessions
    if state.proposals:
        document["proposals"] = [encode_task(task) for task in state.proposals]
    if state.attempts_reset:
        document["attempts_reset"] = state.attempts_reset
    if state.proofs:
        document["proofs"] = True
    return {**document, **state.extra}


def _encode_config(config: SessionConfig) -> dict[str, Any]:
    return {
        "concurrency_mode": config.concurrency_mode,
        "max_tasks_per_session": config.max_tasks_per_session,
        "max_sessions": config.max_sessions,
        **config.extra,
    }


def encode_sessions(state: State) -> list[dict[str, Any]] | None:
    """Return the open sessions as they stand in the document; None for a list that the prose made."""
    if state.sessions is None:
        return None
    return [
        {**{name: getattr(session, name) for name in _SESSION_FIELDS}, **session.extra}
        for session in state.sessions
    ]


_SESSION_FIELDS = tuple(name for name in Session._fields if name != "extra")
_GATE_FIELDS = tuple(name for name in Gate._fields if name != "extra")
_INTENT_FIELDS = tuple(name for name in Intent._fields if name != "extra")
_HANDBACK_FIELDS = tuple(name for name in Handback._fields if name != "extra")
_INTERRUPTION_FIELDS = tuple(name for name in Interruption._fields if name != "extra")
# Written only where they say something: not 0, not false.
_TASK_PLAIN = ("fence", "interruptions", "unproven")
_TASK_LISTS = ("notes", "touched", "attempted_by")
_TASK_RECORDS = {
    "gate": _GATE_FIELDS,
    "intent": _INTENT_FIELDS,
    "handback": _HANDBACK_FIELDS,
    "interrupted": _INTERRUPTION_FIELDS,
}
_ATTEMPT_FIELDS = tuple(name for name in Attempt._fields if name != "extra")
_TASK_OPTIONS = (
    "completed_commit",
    "description",
    "claimed_by",
    "claimed_at",
    "lease_expires_at",
    "worktree",
    "failed_at",
    "halt",
    "proof",
)


def encode_task(task: Task) -> dict[str, Any]:
    """Return `task` as it stands in the list's document."""
    document: dict[str, Any] = {
        "id": task.id,
        "title": task.title,
        "status": task.status,
        "priority": task.priority,
        "depends_on": list(task.depends_on),
        "attempts": task.attempts,
        "max_attempts": task.max_attempts,
        "started_at_commit": task.started_at_commit,
        "validation": _encode_validation(task.validation),
        "on_failure": {"cleanup": task.on_failure.cleanup, **task.on_failure.extra},
        "error_log": list(task.error_log),
        "checkpoints": [_encode_checkpoint(each) for each in task.checkpoints],
        "completed_at": task.completed_at,
    }
    for name in _TASK_OPTIONS:
        value = getattr(task, name)
        if value is not None:
            document[name] = value
    for name in _TASK_PLAIN:
        if getattr(task, name):
            document[name] = getattr(task, name)
    for name in _TASK_LISTS:
        if getattr(task, name):
            document[name] = list(getattr(task, name))
    for name, known in _TASK_RECORDS.items():
        record = getattr(task, name)
        if record is not None:
            document[name] = _said(record, known)
    if task.attempt_log:
        document["attempt_log"] = [_said(each, _ATTEMPT_FIELDS) for each in task.attempt_log]
    document.update(task.extra)
    return document


def _encode_validation(validation: Validation) -> dict[str, Any]:
    document: dict[str, Any] = {
        "command": validation.command,
        "timeout_seconds": validation.timeout_seconds,
    }
    if validation.cwd is not None:
        document["cwd"] = validation.cwd
    if validation.protect:
        document["protect"] = list(validation.protect)
    if validation.red_first:
        document["red_first"] = True
    document.update(validation.extra)
    return document


def _encode_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    document: dict[str, Any] = {
        "step": checkpoint.step,
        "total": checkpoint.total,
        "description": checkpoint.description,
        "timestamp": checkpoint.timestamp,
    }
    if checkpoint.tree is not None:
        document["tree"] = checkpoint.tree
    document.update(checkpoint.extra)
    return document


def _said(
    record: Attempt | Gate | Handback | Intent | Interruption, names: tuple[str, ...]
) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in names}
    return {**{name: value for name, value in values.items() if value is not None}, **record.extra}


_inline = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False).encode
_BETWEEN = ",\n    "
_OPENING = '"tasks": [\n    '
_CLOSING = "\n  ]"


def render(state: State, reuse: Mapping[int, str] = NO_BLOCKS) -> str:
    """Return `state` as the text of the file: each field of a task on a line of its own, its value inline.

    `reuse` maps `id(task)` to the text it had in the file it was read from (see `cut`), so that what did
    not change is not written anew. The caller keeps those tasks alive, else others may get their id.
    """
    shell = encode_shell(state)
    lines = [f"{encode_basestring(key)}: {_value(item)}" for key, item in shell.items()]
    if state.tasks:
        tasks = [reuse.get(id(task)) or _render_task(task) for task in state.tasks]
        lines[list(shell).index("tasks")] = _OPENING + _BETWEEN.join(tasks) + _CLOSING
    text = "{\n  " + ",\n  ".join(lines) + "\n}\n"
    # Half of a surrogate pair is a legal JSON string, but only when escaped: UTF-8 cannot hold it.
    return text.encode("utf-8", "backslashreplace").decode()


def cut(text: str) -> tuple[str, list[str]]:
    """Return what `render` made in two parts: the document without its tasks, and the text of each task."""
    # A text of ours holds no raw line break inside a string, so these marks stand only around tasks.
    before, opening, rest = text.partition(_OPENING)
    if not opening:
        return text, []
    inside, closing, after = rest.partition(_CLOSING)
    found = inside.split(_BETWEEN + "{")
    found[1:] = ["{" + each for each in found[1:]]
    return before + opening + closing + after, found


def _render_task(task: Task) -> str:
    lines = [f"{encode_basestring(key)}: {_value(item)}" for key, item in encode_task(task).items()]
    return "{\n      " + ",\n      ".join(lines) + "\n    }"


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

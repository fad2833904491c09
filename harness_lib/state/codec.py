"""harness-tasks.json as values, and back: strict reading that says where, and quick writing.

Standard library only: hooks decode with it.
Source: seed, "harness-tasks.json (Structured State)"; design section 3, "Reading is strict, and says where".
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import Any, TypeVar

from harness_lib.errors import ConfigError
from harness_lib.state import shapes
from harness_lib.state.contract import STATE
from harness_lib.state.shapes import Problem, Problems
from harness_lib.task import (
    Checkpoint,
    Gate,
    Intent,
    OnFailure,
    Session,
    SessionConfig,
    State,
    Task,
    Validation,
)

LISTED = 20
NO_BLOCKS: Mapping[int, str] = MappingProxyType({})

T = TypeVar("T")


class ContractError(ConfigError):
    """A document that parses but is no task list; `problems` holds every problem, the message the first 20."""

    def __init__(self, problems: Sequence[Problem], source: str = "harness-tasks.json") -> None:
        self.problems = tuple(problems)
        lines = [f"{source}: {problem}" for problem in self.problems[:LISTED]]
        if len(self.problems) > LISTED:
            lines.append(f"… and {len(self.problems) - LISTED} more problems")
        super().__init__(
            "\n".join(lines), "correct the named fields in the file, then look again: harness check"
        )


class UnparseableError(ValueError):
    """Bytes that are not JSON at all: the one case in which a list is restored from an older one."""


def parse(data: bytes) -> object:
    """Return the JSON document in `data` (UTF-8, with or without a byte order mark).

    Raises UnparseableError if it is not JSON, and ContractError for JSON that cannot be held: nested too deep,
    or a number of thousands of digits.
    """
    try:
        return json.loads(data, parse_constant=_refuse_constant, parse_float=_finite)
    except (json.JSONDecodeError, UnicodeError) as error:
        raise UnparseableError(str(error)) from error
    except RecursionError as error:
        raise ContractError([Problem("", "lists and objects are nested too deep")]) from error
    except ValueError as error:
        raise ContractError([Problem("", f"a number cannot be read: {error}")]) from error


def _refuse_constant(name: str) -> object:
    # Python's reader takes NaN and Infinity; no other does, so writing them back would break the file for them.
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else math.copysign(sys.float_info.max, value)


def decode(document: object, source: str = "harness-tasks.json") -> State:
    """Return `document` (parsed JSON) as a State; an absent field gets its default.

    Raises ContractError with every problem and its JSON path; `source` names the file in its message.
    """
    problems: Problems = []
    if type(document) is not dict:
        raise ContractError([Problem("", f"is {shapes.show(document)}, must be an object")], source)
    state = STATE(document, "", problems)
    tasks = document.get("tasks")
    if type(tasks) is list:
        problems.extend(links([_ends(task) for task in tasks if type(task) is dict]))
    if problems:
        raise ContractError(problems, source)
    assert isinstance(state, State)
    return state


def _ends(task: Mapping[str, Any]) -> tuple[object, Sequence[object]]:
    depends_on = task.get("depends_on")
    return task.get("id"), depends_on if type(depends_on) is list else ()


def links(ends: Iterable[tuple[object, Sequence[object]]]) -> Problems:
    """Return what is wrong between tasks, given (id, depends_on) of each: repeated ids, dependencies on nothing."""
    ends = list(ends)
    problems: Problems = []
    seen: set[object] = set()
    for index, (name, _) in enumerate(ends):
        if type(name) is str and name in seen:
            problems.append(
                Problem(f"tasks[{index}].id", f"is {shapes.show(name)}, which another task has already")
            )
        elif type(name) is str:
            seen.add(name)
    for index, (_, depends_on) in enumerate(ends):
        problems.extend(
            Problem(f"tasks[{index}].depends_on[{place}]", f"is {shapes.show(name)}, but no task has this id")
            for place, name in enumerate(depends_on)
            if type(name) is str and name not in seen
        )
    return problems


# --- what we wrote and checked ourselves ---------------------------------------------------------------------

_NO_CLEANUP = {"cleanup": None}
_DEFAULT_ON_FAILURE = OnFailure()
_KNOWN: dict[object, frozenset[str]] = {
    build: frozenset(field.name for field in fields(build)) - {"extra"}
    for build in (Validation, OnFailure, Checkpoint, Gate, Intent, Task, Session, SessionConfig, State)
}


def decode_trusted(document: Mapping[str, Any]) -> State:
    """Return the State of a document that `encode` made and nobody has touched since: nothing is checked.

    Only for a file whose stat stamp proves that; anything else goes through `decode`.
    """
    known = dict(document)
    known["session_config"] = _build(SessionConfig, known["session_config"])
    known["tasks"] = tuple([_trusted_task(task) for task in known["tasks"]])
    if "sessions" in known:
        known["sessions"] = tuple([_build(Session, session) for session in known["sessions"]])
    return _build(State, known)


def _trusted_task(document: Mapping[str, Any]) -> Task:
    known = dict(document)
    known["depends_on"] = tuple(known["depends_on"])
    known["error_log"] = tuple(known["error_log"])
    validation = known["validation"]
    if "protect" in validation:
        validation = {**validation, "protect": tuple(validation["protect"])}
    known["validation"] = _build(Validation, validation)
    # Most tasks have no cleanup, and values are frozen: they can share one object.
    on_failure = known["on_failure"]
    known["on_failure"] = _DEFAULT_ON_FAILURE if on_failure == _NO_CLEANUP else _build(OnFailure, on_failure)
    if known["checkpoints"]:
        known["checkpoints"] = tuple([_build(Checkpoint, each) for each in known["checkpoints"]])
    else:
        known["checkpoints"] = ()
    if "gate" in known:
        known["gate"] = _build(Gate, known["gate"])
    if "intent" in known:
        known["intent"] = _build(Intent, known["intent"])
    return _build(Task, known)


def _build(build: Callable[..., T], document: Mapping[str, Any]) -> T:
    known = _KNOWN[build]
    if document.keys() <= known:
        return build(**document)
    extra = {key: document[key] for key in document.keys() - known}
    return build(**{key: value for key, value in document.items() if key in known}, extra=extra)


# --- writing -------------------------------------------------------------------------------------------------


def encode(state: State) -> dict[str, Any]:
    """Return `state` as a JSON document: the seed's fields in its order, then ours where they say something."""
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


_SESSION_FIELDS = tuple(field.name for field in fields(Session) if field.name != "extra")
_GATE_FIELDS = tuple(field.name for field in fields(Gate) if field.name != "extra")
_INTENT_FIELDS = tuple(field.name for field in fields(Intent) if field.name != "extra")
_TASK_OPTIONS = (
    "completed_commit",
    "description",
    "claimed_by",
    "claimed_at",
    "lease_expires_at",
    "worktree",
    "failed_at",
    "halt",
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
    if task.fence:
        document["fence"] = task.fence
    if task.gate is not None:
        document["gate"] = _said(task.gate, _GATE_FIELDS)
    if task.intent is not None:
        document["intent"] = _said(task.intent, _INTENT_FIELDS)
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


def _said(record: Gate | Intent, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in names}
    return {**{name: value for name, value in values.items() if value is not None}, **record.extra}


_inline = json.JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False).encode
_BETWEEN = ",\n    "
_OPENING = '"tasks": [\n    '


def render(state: State, reuse: Mapping[int, str] = NO_BLOCKS) -> str:
    """Return `state` as the text of the file: each field of a task on a line of its own, what is in it inline.

    `reuse` maps `id(task)` to the text it had in the file it was read from (see `blocks`), so that what did not
    change is not written anew. The caller keeps those tasks alive, else another object may get their id.
    """
    shell = encode_shell(state)
    lines = [f"{encode_basestring(key)}: {_value(item)}" for key, item in shell.items()]
    if state.tasks:
        tasks = [reuse.get(id(task)) or _render_task(task) for task in state.tasks]
        lines[list(shell).index("tasks")] = _OPENING + _BETWEEN.join(tasks) + "\n  ]"
    text = "{\n  " + ",\n  ".join(lines) + "\n}\n"
    # Half of a surrogate pair is a legal JSON string, but only when escaped: UTF-8 cannot hold it.
    return text.encode("utf-8", "backslashreplace").decode()


def blocks(state: State, text: str) -> Mapping[int, str]:
    """Return what `render` can reuse: `id(task)` to its text in `text`, which `render` made for an equal state.

    Nothing is returned if `text` is not cut into as many tasks as `state` has.
    """
    start = text.find(_OPENING) + len(_OPENING)
    # A text of ours holds no raw line break inside a string, so these marks stand only between tasks.
    found = text[start : text.find("\n  ]", start)].split(_BETWEEN + "{")
    if len(found) != len(state.tasks):
        return NO_BLOCKS
    found[1:] = ["{" + each for each in found[1:]]
    return {id(task): block for task, block in zip(state.tasks, found, strict=True)}


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

"""Check documents against the published contract in `schemas/`.

It decides about a list that was edited externally, after `codec`, whose messages are better. Only this module
uses jsonschema, whose import takes longer than a whole hook may run.
Source: docs/design.md, "Reading is strict".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lib.errors import EnvSetupError
from harness_lib.state.reading import Problem, is_moment
from harness_lib.task import Task
from harness_lib.text import cut

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

TASKS = "harness-tasks.schema.json"
REPLY = "reply.schema.json"
LONGEST = 300
# Beside harness_lib in a checkout, inside it in an installed package.
_PLACES = (Path(__file__).parents[2] / "schemas", Path(__file__).parents[1] / "schemas")


def problems(document: object) -> list[Problem]:
    """Return the problems of a whole list, the most relevant first; [] if it is valid.

    No schema can express unique ids and existing dependencies: `codec.links` checks those.
    """
    return _check(_validator("list"), document, "")


def task_problems(document: object, index: int) -> list[Problem]:
    """Return the problems of one task, at `index` in its list."""
    return _check(_validator("task"), document, f"tasks[{index}]")


def session_problems(document: object, index: int) -> list[Problem]:
    """Return the problems of one open session, at `index` in its list."""
    return _check(_validator("session"), document, f"sessions[{index}]")


def shell_problems(document: Mapping[str, object]) -> list[Problem]:
    """Return the problems of a list, without those of its tasks and sessions."""
    return _check(_validator("shell"), document, "")


def reply_problems(document: object) -> list[Problem]:
    """Return the problems of the object that a verb prints with `--json`."""
    return _check(_validator("reply"), document, "")


def load(name: str) -> dict[str, Any]:
    """Return the schema in the file `name`. Raises EnvSetupError if this installation lacks it."""
    for place in _PLACES:
        if (place / name).is_file():
            schema: dict[str, Any] = json.loads((place / name).read_bytes())
            return schema
    raise EnvSetupError(f"This installation lacks schemas/{name}.", "Install harness again.")


def _schema(part: str) -> dict[str, Any]:
    if part == "reply":
        return load(REPLY)
    schema = load(TASKS)
    if part in schema["$defs"]:
        return {"$schema": schema["$schema"], "$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
    if part == "shell":
        schema["properties"] |= {"tasks": True, "sessions": True}
        schema["required"] = []
    return schema


@cache
def _validator(part: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 (see the top of this file)

    formats = FormatChecker(formats=())
    formats.checks("harness-moment")(lambda value: not isinstance(value, str) or is_moment(value))
    return Draft202012Validator(_schema(part), format_checker=formats)


def _check(validator: Draft202012Validator, document: object, prefix: str) -> list[Problem]:
    from jsonschema.exceptions import relevance  # noqa: PLC0415 (see the top of this file)

    errors = sorted(validator.iter_errors(document), key=relevance, reverse=True)
    return [Problem(_path(prefix, error), cut(error.message, LONGEST)) for error in errors]


def _path(prefix: str, error: ValidationError) -> str:
    # jsonschema names a missing key only in its sentence: "'status' is a required property".
    missing = (error.message.split("'")[1],) if error.validator == "required" else ()
    path = prefix
    for part in (*error.absolute_path, *missing):
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path if prefix else path.lstrip(".")


def problems_of_new(
    document: Mapping[str, Any], tasks: Sequence[Task], passed: Iterable[Task]
) -> list[Problem]:
    """Return the problems of `document`, which was decoded to `tasks`, as `problems` does.

    Tasks that are among `passed`, the list that harness wrote last, are not checked: to check thousands takes
    longer than everything else under the lock.
    """
    known = {task.id: task for task in passed}
    new = [index for index, task in enumerate(tasks) if known.get(task.id) != task]
    sessions = document.get("sessions") or ()
    is_broken = (
        shell_problems(document)
        or any(session_problems(session, index) for index, session in enumerate(sessions))
        or any(task_problems(document["tasks"][index], index) for index in new)
    )
    return problems(document) if is_broken else []

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
from typing import TYPE_CHECKING, Any, Literal

from harness_lib.errors import EnvSetupError
from harness_lib.state.reading import Problem, is_moment
from harness_lib.task import Task
from harness_lib.text import cut

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

Part = Literal["list", "shell", "task", "session", "reply"]
TASKS = "harness-tasks.schema.json"
REPLY = "reply.schema.json"
LONGEST = 300
# Beside harness_lib in a checkout, inside it in an installed package.
_PLACES = (Path(__file__).parents[2] / "schemas", Path(__file__).parents[1] / "schemas")


def problems(document: object, part: Part = "list") -> list[Problem]:
    """Return the problems of a list, or of one `part` of it, the most relevant first; [] if it is valid.

    "shell" is a list without its tasks and sessions, "reply" the object that a verb prints with `--json`.
    No schema can express unique ids and existing dependencies: `codec.links` checks those.
    """
    from jsonschema.exceptions import relevance  # noqa: PLC0415 (see the top of this file)

    errors = sorted(_validator(part).iter_errors(document), key=relevance, reverse=True)
    return [Problem(_path(error), cut(error.message, LONGEST)) for error in errors]


def load(name: str) -> dict[str, Any]:
    """Return the schema in the file `name`. Raises EnvSetupError if this installation lacks it."""
    for place in _PLACES:
        if (place / name).is_file():
            schema: dict[str, Any] = json.loads((place / name).read_bytes())
            return schema
    raise EnvSetupError(f"This installation lacks schemas/{name}.", "Install harness again.")


def _schema(part: Part) -> dict[str, Any]:
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
def _validator(part: Part) -> Draft202012Validator:
    from jsonschema import Draft202012Validator, FormatChecker  # noqa: PLC0415 (see the top of this file)

    formats = FormatChecker(formats=())
    formats.checks("harness-moment")(lambda value: not isinstance(value, str) or is_moment(value))
    return Draft202012Validator(_schema(part), format_checker=formats)


def _path(error: ValidationError) -> str:
    # jsonschema names a missing key only in its sentence: "'status' is a required property".
    missing = (error.message.split("'")[1],) if error.validator == "required" else ()
    parts = (*error.absolute_path, *missing)
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return path.lstrip(".")


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
        problems(document, "shell")
        or any(problems(session, "session") for session in sessions)
        or any(problems(document["tasks"][index], "task") for index in new)
    )
    return problems(document) if is_broken else []

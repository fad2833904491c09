"""Check documents against the published schemas, which say what the tables of the records say.

Only tests use jsonschema: harness itself reads by the tables.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, relevance

from harness_lib.state.reading import Problem, is_moment

TASKS = "harness-tasks.schema.json"
REPLY = "reply.schema.json"
_PLACE = Path(__file__).parents[1] / "schemas"


def problems(document: object) -> list[Problem]:
    """Return the problems of a whole list, the most relevant first; [] if it is valid.

    No schema can express unique ids and existing dependencies: `codec.links` checks those.
    """
    return _check(TASKS, document)


def reply_problems(document: object) -> list[Problem]:
    """Return the problems of the object that a verb prints with `--json`."""
    return _check(REPLY, document)


def load(name: str) -> dict[str, Any]:
    """Return the schema in the file `name`."""
    schema: dict[str, Any] = json.loads((_PLACE / name).read_bytes())
    return schema


@cache
def _validator(name: str) -> Draft202012Validator:
    formats = FormatChecker(formats=())
    formats.checks("harness-moment")(lambda value: not isinstance(value, str) or is_moment(value))
    return Draft202012Validator(load(name), format_checker=formats)


def _check(name: str, document: object) -> list[Problem]:
    errors = sorted(_validator(name).iter_errors(document), key=relevance, reverse=True)
    return [Problem(_path(error), error.message) for error in errors]


def _path(error: ValidationError) -> str:
    # jsonschema names a missing key only in its sentence: "'status' is a required property".
    missing = (error.message.split("'")[1],) if error.validator == "required" else ()
    path = ""
    for part in (*error.absolute_path, *missing):
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.lstrip(".")

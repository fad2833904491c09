"""Options that several verbs share: numbers, the limits of a run, and the fields of a task."""

from __future__ import annotations

import math
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    BooleanOptionalAction,
    Namespace,
    _ActionsContainer,
    _ArgumentGroup,
)
from functools import partial
from typing import TYPE_CHECKING, Any

from harness_lib.records import given
from harness_lib.runs import settings

if TYPE_CHECKING:
    from harness_lib.runs.settings import Key

# The limits among the settings of a run.
LIMITS = {
    "max-cost": "end the run when agents have cost this much (0: no limit)",
    "max-tokens": "end the run when agents have used this many tokens (0: no limit)",
    "max-hours": "end the run after this long (0: no limit)",
    "max-tasks": "end the run after this many finished attempts (0: no limit)",
    "task-cost": "end an attempt that costs this much (0: no limit)",
    "task-tokens": "end an attempt that uses this many tokens (0: no limit)",
    "task-hours": "end an attempt that takes this long (0: no limit)",
}
# The values of other settings than these are named after them, or are N.
_VALUES = {
    **dict.fromkeys(("max-cost", "task-cost"), "USD"),
    **dict.fromkeys(("max-hours", "task-hours"), "H"),
    **dict.fromkeys(("silence", "longest"), "MIN"),
    **dict.fromkeys(("agent-command", "merge-command", "notify"), "CMD"),
    "max-file": "MB",
    "protect": "GLOB",
    "allow-write": "PATH",
    "allow-env": "NAME",
}


def amount(text: str) -> float:
    """Return `text` as a number of 0 or more; argparse says what is wrong with any other."""
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= number < math.inf:
        raise ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return number


def whole(text: str) -> int:
    """Return `text` as a whole number of 0 or more."""
    number = amount(text)
    if number != int(number):
        raise ArgumentTypeError(f"{text!r} is not a whole number")
    return int(number)


def names(text: str) -> tuple[str, ...]:
    """Return the names in `ID, ID`; for an option with `action="extend"`, which may stand more than once."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def add_setting(parser: _ActionsContainer, name: str, words: str, *also: str) -> None:
    """Add the option for a setting of a run, which `runs/settings.py` knows; `also`: its other names."""
    key = settings.KEYS[name]
    more: dict[str, Any] = {"action": "append"} if key.kind == "texts" else {}
    if key.words:
        more = {"choices": key.words}
    elif key.kind in ("number", "whole"):
        more = {"type": partial(_number, key), "metavar": "N"}
    if name in _VALUES:
        more["metavar"] = _VALUES[name]
    parser.add_argument(*also, f"--{name}", help=words, **more)


def _number(key: Key, text: str) -> float:
    value = settings.parsed(key, text)
    if problem := settings.problem(key, value):
        raise ArgumentTypeError(f"{text!r} is not {problem}")
    return float(value) if key.kind == "number" else int(value)


def add_task(parser: ArgumentParser | _ArgumentGroup, *, editing: bool) -> None:
    """Add an option for each field; `editing`: none has a default, and each that is typed replaces."""
    for field in given.FIELDS:
        if field.typed.option and (editing or field.path != "title"):
            _add_field(parser, field, editing=editing)


def typed_task(args: Namespace) -> dict[str, Any]:
    """Return what was typed, by the path of the field."""
    options = ((field, getattr(args, _dest(field), None)) for field in given.FIELDS if field.typed.option)
    return {
        field.path: tuple(value) if field.kind.form == "list" else value
        for field, value in options
        if value is not None
    }


def _dest(field: given.Given) -> str:
    return field.path.replace(".", "_")


def _add_field(parser: ArgumentParser | _ArgumentGroup, field: given.Given, *, editing: bool) -> None:
    about = field.typed
    help_text = about.help if about.edit_help is None or not editing else about.edit_help
    more: dict[str, Any] = {"dest": _dest(field)}
    match field.kind.form:
        case "flag":
            more["action"] = BooleanOptionalAction if editing else "store_true"
        case "record":
            more["action"] = "append"
        case "list":
            more |= {"action": "extend", "type": names} if about.splits else {"action": "append"}
        case "integer":
            more["type"] = int
            if not editing:
                help_text = f"{help_text} (default: {field.default})".strip()
        case "choice":
            more["choices"] = field.kind.words
    if about.metavar:
        more["metavar"] = about.metavar
    # The word that stands in a check list is understood as an option, too: --check, --after.
    words = [f"--{word.replace(' ', '-')}" for word in about.words[:1] if "_" not in word]
    names_of_it = dict.fromkeys((about.option, *words))
    parser.add_argument(*names_of_it, default=None, help=help_text or None, **more)

"""Options that several verbs share: numbers, the limits of a run, and the fields of a task."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace, _ArgumentGroup
from typing import Any

from harness_lib.records import given
from harness_lib.records.given import Given

LIMITS = (
    ("--max-cost", "USD", float, "end the run when agents have cost this much"),
    ("--max-tokens", "N", int, "end the run when agents have used this many tokens"),
    ("--max-hours", "H", float, "end the run after this long"),
    ("--max-tasks", "N", int, "end the run after this many finished attempts"),
    ("--task-cost", "USD", float, "end an attempt that costs this much"),
    ("--task-tokens", "N", int, "end an attempt that uses this many tokens"),
    ("--task-hours", "H", float, "end an attempt that takes this long"),
)


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


def more_than_nothing(text: str) -> float:
    """Return `text` as a number above 0."""
    number = amount(text)
    if number == 0:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def names(text: str) -> tuple[str, ...]:
    """Return the names in `ID, ID`; for an option with `action="extend"`, which may stand more than once."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def add_limits(parser: ArgumentParser) -> None:
    """Add the limits; 0 is no limit."""
    for flag, metavar, kind, words in LIMITS:
        parser.add_argument(flag, metavar=metavar, type=kind, help=f"{words} (0: no limit)")


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


def _dest(field: Given) -> str:
    return field.path.replace(".", "_")


def _add_field(parser: ArgumentParser | _ArgumentGroup, field: Given, *, editing: bool) -> None:
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

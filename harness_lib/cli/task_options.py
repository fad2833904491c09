"""The options of `harness add` and `harness edit`, as the fields of a task say how they are typed."""

from __future__ import annotations

from argparse import ArgumentParser, BooleanOptionalAction, Namespace, _ArgumentGroup
from typing import Any

from harness_lib.cli.verb import names
from harness_lib.records import given
from harness_lib.records.given import Given


def add(parser: ArgumentParser | _ArgumentGroup, *, editing: bool) -> None:
    """Add an option for each field; `editing`: none has a default, and each that is typed replaces."""
    for field in given.FIELDS:
        if field.typed.option and (editing or field.path != "title"):
            _add(parser, field, editing=editing)


def typed(args: Namespace) -> dict[str, Any]:
    """Return what was typed, by the path of the field."""
    options = ((field, getattr(args, _dest(field), None)) for field in given.FIELDS if field.typed.option)
    return {
        field.path: tuple(value) if field.kind.form == "list" else value
        for field, value in options
        if value is not None
    }


def _dest(field: Given) -> str:
    return field.path.replace(".", "_")


def _add(parser: ArgumentParser | _ArgumentGroup, field: Given, *, editing: bool) -> None:
    about = field.typed
    help_text = about.help if about.edit_help is None or not editing else about.edit_help
    more: dict[str, Any] = {"dest": _dest(field)}
    match field.kind.form:
        case "flag":
            more["action"] = BooleanOptionalAction if editing else "store_true"
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
    parser.add_argument(about.option, default=None, help=help_text or None, **more)

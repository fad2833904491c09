"""`harness config`: show the settings of `harness run` and where each comes from, or change one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import suppress
from typing import Any

from harness_lib.core import quoting, rights
from harness_lib.core.context import Context, Reply
from harness_lib.errors import ConfigError, RefusedError, UsageError
from harness_lib.runs import settings

SUMMARY = "show the settings of harness run and where each comes from, or change one"
EXAMPLE = "harness config max-cost 20"
HELP_ORDER = 460
SHOWN = 60


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="the setting, called like the option of harness run")
    parser.add_argument("value", nargs="?", help="its new value")
    parser.add_argument("--unset", action="store_true", help="remove it from the file")
    parser.add_argument(
        "--project", action="store_true", help="change harness.toml of this project, not your own file"
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    if args.value is None and not args.unset:
        return _shown(ctx, args.name)
    if args.name is None or (args.unset and args.value is not None):
        raise UsageError("Name a setting, and its value unless it is to be removed.", EXAMPLE)
    if agent := rights.known_agent(ctx):
        raise RefusedError(
            f"The settings of harness run are for the user to change, not for {agent}.",
            f"Ask the user to type, in a terminal: {EXAMPLE.rsplit(' ', 2)[0]} {args.name} VALUE",
        )
    path = settings.project_file(ctx) if args.project else settings.user_file(ctx.env)
    if not path:
        raise UsageError("There is no project here.", "Type it where the list is, or without --project.")
    value = settings.change(path, args.name, args.value, is_project=args.project)
    how = "was removed from" if args.unset else f"is {_words(value)} in"
    instead = "" if args.unset else _instead(ctx, args.name, value)
    return Reply(f"{args.name} {how} {path}{instead}", next="harness config", extra={"file": str(path)})


def _instead(ctx: Context, name: str, value: Any) -> str:
    """Return what a run here takes in place of `value`, as the other file is narrower; "" if nothing."""
    with suppress(ConfigError, UsageError):
        found = settings.effective(ctx, {})[name]
        if found.value != value:
            return f"; a run here takes {_words(found.value)} ({found.origin})"
    return ""


def _shown(ctx: Context, name: str | None) -> Reply:
    found = settings.effective(ctx, {})
    if name is not None and name not in found:
        raise UsageError(f"{name} is not a setting.", f"There are: {', '.join(found)}.")
    rows = {each: found[each] for each in ([name] if name else found)}
    wide = max(map(len, rows))
    lines = [
        f"{each:<{wide}}  {_words(setting.value):<12}  {setting.origin}" for each, setting in rows.items()
    ]
    values = {each: {"value": setting.value, "origin": setting.origin} for each, setting in rows.items()}
    return Reply("\n".join(lines), extra={"settings": values, "file": str(settings.user_file(ctx.env))})


def _words(value: Any) -> str:
    if value is None or value == ():
        return "-"
    return quoting.one_line(", ".join(value) if isinstance(value, tuple) else f"{value}", SHOWN)

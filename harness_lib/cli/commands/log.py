"""`harness log`: the end of the log."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import get_args

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.task import LogType
from harness_lib.verbs import log

SUMMARY = "the end of the log"
EXAMPLE = "harness log -n 50 --type ERROR"
HELP_ORDER = 170

LOG_TYPES: dict[str, str] = {name.lower(): name for name in get_args(LogType)}


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument(
        "-n", metavar="N", dest="lines", type=_count, default=log.DEFAULT_LINES, help="(default: %(default)s)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added")
    parser.add_argument("--type", type=_log_type, metavar="TYPE", help=", ".join(LOG_TYPES.values()))
    parser.add_argument("--task", metavar="ID")
    parser.add_argument("--session", metavar="N", type=int)


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness log`."""
    only = log.Filter(args.type, args.task, args.session)
    if not args.follow:
        return log.run(ctx, lines=args.lines, only=only)
    screen.refuse_json("-f", "harness log --json")
    from harness_lib.cli import live  # noqa: PLC0415 (on a terminal it needs rich)

    return live.follow_log(ctx, screen, args.lines, only)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(log.MOST_LINES))):
        raise ArgumentTypeError(f"{text!r} is no number of lines")
    return min(int(text), log.MOST_LINES)


def _log_type(text: str) -> str:
    try:
        return LOG_TYPES[text.lower()]
    except KeyError:
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(LOG_TYPES.values())}") from None

"""`harness stop`: end the session."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import stop

SUMMARY = "end the session"
EXAMPLE = "harness stop"
HELP_ORDER = 130


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("--session", metavar="N", type=int, help="end session N, whoever opened it")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness stop`."""
    return stop.run(ctx, args.session)

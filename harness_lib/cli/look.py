"""The verbs that only look."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import Verb
from harness_lib.ops import status
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply


def _status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every task, however many there are")


def _status(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    return status.run(ctx, everything=args.all or screen.is_terminal)


VERBS = (Verb("status", "where the list stands", "harness status", _status, _status_arguments),)

"""`harness validate`: run checks, record nothing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import validate

SUMMARY = "run checks, record nothing"
EXAMPLE = "harness validate task-001"
HELP_ORDER = 260


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task")
    parser.add_argument("--all", action="store_true", help="every task, the completed ones too")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness validate`."""
    return validate.run(ctx, args.id, everything=args.all)

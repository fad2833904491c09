"""`harness show`: everything about one task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import show

SUMMARY = "everything about one task"
EXAMPLE = "harness show task-001"
HELP_ORDER = 220


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", help="the task")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness show`."""
    return show.run(ctx, args.id)

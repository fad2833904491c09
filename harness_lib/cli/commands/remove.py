"""`harness remove`: take a task off the list."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import remove

SUMMARY = "take a task off the list"
EXAMPLE = "harness remove task-001"
HELP_ORDER = 250


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", help="the task")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness remove`."""
    return remove.run(ctx, args.id)

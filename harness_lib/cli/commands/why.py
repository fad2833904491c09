"""`harness why`: why a task can or cannot be claimed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import why

SUMMARY = "why a task can or cannot be claimed"
EXAMPLE = "harness why task-003"
HELP_ORDER = 190


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task (default: the next one, and each that waits)")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness why`."""
    return why.run(ctx, args.id) if args.id else why.run_all(ctx)

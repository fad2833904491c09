"""`harness finish`: run the check: commit and complete, or roll back."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import finish

SUMMARY = "run the check: commit and complete, or roll back"
EXAMPLE = "harness finish task-001"
HELP_ORDER = 80


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task (default: the one you hold)")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness finish`."""
    return finish.run(ctx, args.id)

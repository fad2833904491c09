"""`harness retry`: give a failed or completed task a new start, and what it had blocked."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import retry

SUMMARY = "give a failed or completed task a new start, and what it had blocked"
EXAMPLE = "harness retry task-001"
HELP_ORDER = 240


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", help="the task")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness retry`."""
    return retry.run(ctx, args.id)

"""`harness fail`: give up this attempt: roll back, keep the work in a rescue ref."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.task import CATEGORIES
from harness_lib.verbs import fail

SUMMARY = "give up this attempt: roll back, keep the work in a rescue ref"
EXAMPLE = 'harness fail task-001 --category TASK_EXEC --message "the API has no such call"'
HELP_ORDER = 90


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task (default: the one you hold)")
    parser.add_argument("--category", choices=CATEGORIES, default="TASK_EXEC")
    parser.add_argument("--message", required=True, help="what went wrong, for the next attempt to read")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness fail`."""
    return fail.run(ctx, args.id, args.category, args.message)

"""`harness note`: leave a line for the tasks that come later."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import note

SUMMARY = "leave a line for the tasks that come later"
EXAMPLE = 'harness note task-001 "the test server needs a port of its own"'
HELP_ORDER = 70


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", help="the task that taught it")
    parser.add_argument("text", help="what later tasks should know: a decision, a trap")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness note`."""
    return note.run(ctx, args.id, args.text)

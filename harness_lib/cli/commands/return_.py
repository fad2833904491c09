"""`harness return`: send work that waits for a person back to an agent; no attempt is counted."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import return_

SUMMARY = "send work that waits for a person back to an agent; no attempt is counted"
EXAMPLE = 'harness return task-001 "read the key from the environment; add no .env"'
HELP_ORDER = 244


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", help="the task")
    parser.add_argument("text", help="what is to be changed; the next agent reads it")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness return`."""
    return return_.run(ctx, args.id, args.text)

"""`harness checkpoint`: record how far the work has come."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import checkpoint

SUMMARY = "record how far the work has come"
EXAMPLE = 'harness checkpoint task-001 2/4 "routes created, tests pending"'
HELP_ORDER = 60


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="(default: the one that you hold)")
    parser.add_argument("step", metavar="M/N", help="step M of N is done")
    parser.add_argument("text", help="what was done")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness checkpoint`."""
    return checkpoint.run(ctx, args.id, args.step, args.text)

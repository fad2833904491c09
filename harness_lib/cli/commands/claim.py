"""`harness claim`: take the next task and print its brief."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli import amounts
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import claim

SUMMARY = "take the next task and print its brief"
EXAMPLE = "harness claim"
HELP_ORDER = 50


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="this task instead of the next in order")
    parser.add_argument("--dry-run", action="store_true", help="say which and why, take nothing")
    parser.add_argument(
        "--wait", metavar="SEC", type=amounts.amount, default=0.0, help="wait while others hold what is left"
    )


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness claim`."""
    return claim.run(ctx, args.id, dry_run=args.dry_run, wait=args.wait)

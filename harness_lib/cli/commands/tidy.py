"""`harness tidy`: show what of old logs and rescued work would go, and take it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.attempts import old_work
from harness_lib.cli import amounts
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import tidy

SUMMARY = "show what of old logs and rescued work would go, and take it"
EXAMPLE = "harness tidy --days 30"
HELP_ORDER = 290


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument(
        "--days",
        metavar="N",
        type=amounts.amount,
        default=old_work.DAYS,
        help=f"logs older than this ({old_work.DAYS:g})",
    )
    parser.add_argument(
        "--megabytes",
        metavar="N",
        type=amounts.whole,
        default=old_work.MEGABYTES,
        help=f"the oldest logs beyond this in all ({old_work.MEGABYTES})",
    )
    parser.add_argument(
        "--rescues",
        metavar="DAYS",
        type=amounts.amount,
        help="rescued work older than this, too (default: none)",
    )
    parser.add_argument("--yes", action="store_true", help="take it; without this it is only shown")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness tidy`."""
    return tidy.run(ctx, days=args.days, megabytes=args.megabytes, rescues=args.rescues, take=args.yes)

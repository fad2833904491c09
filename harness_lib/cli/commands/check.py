"""`harness check`: what is wrong with the list, and what it would run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core import repair_list
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import check

SUMMARY = "what is wrong with the list, and what it would run"
EXAMPLE = "harness check"
HELP_ORDER = 200


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("--all", action="store_true", help="every problem and every command, uncut")
    parser.add_argument(
        "--repair", action="store_true", help="restore a broken list and mend what a crash left behind"
    )
    parser.add_argument(
        "--restore",
        action="store_true",
        help="for a person: put the last good list in the place of one that cannot be used (it is kept)",
    )


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness check`."""
    if args.restore:
        return repair_list.put_back(ctx)
    return repair_list.run(ctx) if args.repair else check.run(ctx, everything=args.all)

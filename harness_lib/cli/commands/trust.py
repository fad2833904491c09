"""`harness trust`: let the commands of a list run that came with a clone."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import trust

SUMMARY = "let the commands of a list run that came with a clone"
EXAMPLE = "harness trust"
HELP_ORDER = 270


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("--yes", action="store_true", help="I have read them and they are mine")
    parser.add_argument("--all", action="store_true", help="show every command, however many there are")


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness trust`."""
    ask = screen.ask if screen.is_answerable and not screen.json else None
    return trust.run(ctx, yes=args.yes, everything=args.all, ask=ask)

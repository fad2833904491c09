"""`harness release`: hand a claim back; no attempt is counted."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import release

SUMMARY = "hand a claim back; no attempt is counted"
EXAMPLE = "harness release task-001"
HELP_ORDER = 100


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task (default: the one you hold)")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness release`."""
    return release.run(ctx, args.id)

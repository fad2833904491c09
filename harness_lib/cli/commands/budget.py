"""`harness budget`: what a run may use up and has; changes its limits while it goes on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli import limit_options
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import budget

SUMMARY = "what a run may use up and has; changes its limits while it goes on"
EXAMPLE = "harness budget --max-cost 20"
HELP_ORDER = 150


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    limit_options.add(parser)


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness budget`."""
    return budget.run(ctx, limit_options.typed(args))

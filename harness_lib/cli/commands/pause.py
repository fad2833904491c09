"""`harness pause`: switch the hooks off until the next start."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import pause

SUMMARY = "switch the hooks off until the next start"
EXAMPLE = "harness pause"
HELP_ORDER = 300


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness pause`."""
    return pause.run(ctx)

"""`harness beat`: a sign of life: renew the lease of what you hold (hooks do it for you)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import beat

SUMMARY = "a sign of life: renew the lease of what you hold (hooks do it for you)"
EXAMPLE = "harness beat"
HELP_ORDER = 120


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness beat`."""
    return beat.run(ctx)

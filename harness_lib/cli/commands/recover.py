"""`harness recover`: recover what was interrupted."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import recover

SUMMARY = "recover what was interrupted"
EXAMPLE = "harness recover"
HELP_ORDER = 110


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness recover`."""
    return recover.run(ctx)

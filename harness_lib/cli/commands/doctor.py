"""`harness doctor`: the usual troubles, each with its cure."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import doctor

SUMMARY = "the usual troubles, each with its cure"
EXAMPLE = "harness doctor"
HELP_ORDER = 210


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness doctor`."""
    return doctor.run(ctx)

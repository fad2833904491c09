"""`harness start`: open a session: recover, check the environment, name the next task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.runs import open_session

SUMMARY = "open a session: recover, check the environment, name the next task"
EXAMPLE = "harness start"
HELP_ORDER = 40


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness start`."""
    return open_session.reply(ctx)

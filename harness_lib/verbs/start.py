"""`harness start`: the protocol's Session Start, in its order."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.attempts import open_session
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.terminal.screen import Screen

SUMMARY = "open a session: recover, check the environment, name the next task"
EXAMPLE = "harness start"
HELP_ORDER = 110


def arguments(_parser: ArgumentParser) -> None:
    """Take none."""


def answer(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    """Open a session or go on with the caller's. Raises what `open_session.reply` does."""
    return open_session.reply(ctx)

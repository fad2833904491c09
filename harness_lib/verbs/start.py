"""`harness start`: the steps of the protocol's Session Start, in order."""

from __future__ import annotations

from argparse import Namespace

from harness_lib.attempts import open_session
from harness_lib.core.context import Context, Reply

SUMMARY = "open a session: recover, check the environment, name the next task"
EXAMPLE = "harness start"
HELP_ORDER = 110


def answer(ctx: Context, _args: Namespace) -> Reply:
    """Open a session or continue the caller's. Raises the errors of `open_session.reply`."""
    return open_session.reply(ctx)

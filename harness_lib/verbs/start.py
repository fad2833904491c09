"""`harness start`: the protocol's Session Start, in its order."""

from __future__ import annotations

from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.runs import open_session


def run(ctx: Context) -> Reply:
    """Open a session or go on with the caller's. Raises what `open_session.reply` does."""
    return open_session.reply(ctx)

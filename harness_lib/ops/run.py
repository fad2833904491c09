"""`harness run`: inside an agent the same as `start`, so that an agent that types it starts no second one."""

from __future__ import annotations

from dataclasses import replace

from harness_lib.errors import UsageError
from harness_lib.ops import start
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.system import owner


def run(ctx: Context, agent: str | None = None) -> Reply:
    """Open a session as `start` does; UsageError where an agent would have to be started for it.

    `agent` asks for one by name, wherever this is typed (design section 5).
    """
    if agent is None and owner.in_agent(ctx.env):
        return replace(start.run(ctx), verb="run")
    raise UsageError(
        "Starting agents unattended is not part of harness yet.",
        "Start your agent in this project and let it type: harness start",
    )

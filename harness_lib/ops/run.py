"""`harness run`: inside an agent the same as `start`, so that an agent that types it starts no second one.

In a shell, or where an agent is asked for by name, it is the supervisor (design section 5).
"""

from __future__ import annotations

from dataclasses import replace

from harness_lib.ops import holding, start, supervisor
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.ops.supervisor import Options, Watch
from harness_lib.system import awake, owner


def run(ctx: Context, options: Options, watch: Watch) -> Reply:
    """Open a session for the agent that runs us, or drive agents until nothing is left to do."""
    holding.refuse_supervised(ctx, "harness run")
    asked = options.agent is not None or options.agent_command is not None
    if not asked and owner.in_agent(ctx.env):
        return replace(start.run(ctx), verb="run")
    with awake.keeping(ctx.env, "agents are at work"):
        return supervisor.run(ctx, options, watch)

"""`harness run`: inside an agent the same as `start`, so that an agent that types it starts no second one.

In a shell, or where an agent is asked for by name, it is the supervisor.
"""

from __future__ import annotations

from dataclasses import replace

from harness_lib.errors import HarnessError
from harness_lib.ops import holding, start, supervisor
from harness_lib.ops.context import Context
from harness_lib.ops.notifying import Notifier
from harness_lib.ops.reply import Reply
from harness_lib.ops.run_options import Options
from harness_lib.ops.supervisor import Watch
from harness_lib.system.processes import inhibit_sleep, owner


def run(ctx: Context, options: Options, watch: Watch, *, notify: str | None = None) -> Reply:
    """Open a session for the agent that runs us, or drive agents until nothing is left to do.

    `notify` is a shell command that is told when the run needs a person, and how it has ended.
    """
    holding.refuse_supervised(ctx, "harness run")
    asked = options.agent is not None or options.agent_command is not None
    if not asked and owner.in_agent(ctx.env):
        return replace(start.run(ctx), verb="run")
    with inhibit_sleep.keeping(ctx.env, "agents are at work"):
        return _notified(ctx, options, watch, notify) if notify else supervisor.run(ctx, options, watch)


def _notified(ctx: Context, options: Options, watch: Watch, command: str) -> Reply:
    notifier = Notifier(ctx, command, watch)
    try:
        reply = supervisor.run(ctx, options, notifier.watch)
    except HarnessError as problem:
        notifier.broke(problem)
        raise
    notifier.over(reply)
    return reply

"""`harness run`: inside an agent the same as `start`, so that an agent that types it starts no second one.

In a shell, or where an agent is asked for by name, it is the supervisor.
"""

from __future__ import annotations

from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import HarnessError
from harness_lib.runs import open_session, scheduler
from harness_lib.runs.notify import Notifier
from harness_lib.runs.options import Options
from harness_lib.runs.scheduler import Watch
from harness_lib.system.processes import inhibit_sleep, owner


def run(ctx: Context, options: Options, watch: Watch, *, notify: str | None = None) -> Reply:
    """Open a session for the agent that runs us, or drive agents until nothing is left to do.

    `notify` is a shell command that is told when the run needs a person, and how it has ended.
    """
    asked = options.agent is not None or options.agent_command is not None
    if not asked and owner.in_agent(ctx.env):
        return open_session.reply(ctx)._replace(verb="run")
    with inhibit_sleep.keeping(ctx.env, "agents are at work"):
        return _notified(ctx, options, watch, notify) if notify else scheduler.run(ctx, options, watch)


def _notified(ctx: Context, options: Options, watch: Watch, command: str) -> Reply:
    notifier = Notifier(ctx, command, watch)
    try:
        reply = scheduler.run(ctx, options, notifier.watch)
    except HarnessError as problem:
        notifier.broke(problem)
        raise
    notifier.over(reply)
    return reply

"""`harness pause`: switch the hooks off; nothing else changes."""

from __future__ import annotations

from argparse import Namespace
from contextlib import suppress

from harness_lib.core import sessions
from harness_lib.core.context import Context, Reply
from harness_lib.errors import HarnessError

SUMMARY = "switch the hooks off until the next start, claim, add or import"
EXAMPLE = "harness pause"
HELP_ORDER = 530
OFF = (
    "The hooks are off: no agent is held here any more. The list, sessions and claims stay as they are. "
    "harness start, claim, add or import switches them on again."
)


def answer(ctx: Context, _args: Namespace) -> Reply:
    """Remove the enable flag; idempotent."""
    was_on = ctx.store.hooks_are_on()
    ctx.store.disable_hooks()
    lines = [OFF if was_on else "The hooks were off already."]
    # It works on a list that cannot be read, too.
    with suppress(HarnessError):
        runs = filter(sessions.is_live_run, ctx.ask().sessions() or ())
        ends = [f"{run.pid} goes on; to end it: {sessions.how_to_end(run)}" for run in runs]
        lines += [f"The run of process {end}" for end in ends]
    return Reply("\n".join(lines), next="harness status")

"""`harness beat`: renew the leases of this worker."""

from __future__ import annotations

from argparse import Namespace

from harness_lib.core.context import Context, Reply
from harness_lib.rules import transitions

SUMMARY = "renew the lease of the task that you hold (hooks do this for you)"
EXAMPLE = "harness beat"
HELP_ORDER = 195


def answer(ctx: Context, _args: Namespace) -> Reply:
    """Renew the leases of this worker; an exclusive list has none. A lost lease is not taken back.

    Nor is that of a worker of this name on another machine: if that one is dead, its lease must end.
    """
    here = (None, ctx.machine)
    with ctx.transaction("tasks") as tx:
        mine = [task for task in tx.in_progress() if ctx.holds(task) and tx.concurrent]
        held = [task for task in mine if task.lease_expires_at is not None and task.machine in here]
        for task in held:
            tx.replace(transitions.renew(task, now=tx.now, lease_seconds=ctx.lease_seconds))
    message = f"renewed: {', '.join(task.id for task in held)}" if held else "No active lease to renew."
    return Reply(message, next="harness finish" if held else "harness status")

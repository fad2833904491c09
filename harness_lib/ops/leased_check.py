"""A check whose claim is kept alive while it runs (design section 4, "A lease")."""

from __future__ import annotations

from harness_lib.errors import LeaseLostError
from harness_lib.ops import checking, outcome
from harness_lib.ops.checking import Checked
from harness_lib.ops.context import Context
from harness_lib.rules import transitions
from harness_lib.task import Task

# Room for two renewals that fail before the lease is lost.
RENEWALS_PER_LEASE = 3


def run(ctx: Context, task: Task, command: str, *, suffix: str = "") -> Checked:
    """Run the check and keep the claim alive; LeaseLostError if it is lost, and the check is stopped."""
    lost: list[LeaseLostError] = []

    def renew() -> bool:
        try:
            with ctx.store.transaction() as tx:
                now = outcome.require_claim(tx, task)
                if tx.state.concurrent:
                    tx.replace(transitions.renew(now, now=tx.now, lease_seconds=ctx.lease_seconds))
        except LeaseLostError as error:
            lost.append(error)
        return not lost

    checked = checking.run_check(
        ctx,
        task,
        command,
        log_name=f"{task.attempts + 1}{suffix}",
        on_tick=renew,
        tick=max(1.0, ctx.lease_seconds / RENEWALS_PER_LEASE),
    )
    if lost:
        raise lost[0]
    return checked

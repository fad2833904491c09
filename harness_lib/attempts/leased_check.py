"""Run a check, and keep the claim alive meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from harness_lib.attempts import check, outcome
from harness_lib.checks.checked import Checked
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HeldError, LeaseLostError, StateUnreadableError
from harness_lib.rules import rechecks, transitions
from harness_lib.task import Task

# What checks have said, by command, directory and tree.
Known = dict[tuple[rechecks.Key, str], Checked]

# Room for two renewals that fail before the lease is lost.
RENEWALS_PER_LEASE = 3


def run(ctx: Context, task: Task, *, suffix: str = "", holder: Task | None = None) -> Checked:
    """Run the check and keep the claim alive; LeaseLostError if it is lost, and the check is stopped.

    `holder`: the task that the caller has claimed, if it is another one.
    """
    name = f"{task.attempts + 1}{suffix}"
    return while_held(
        ctx,
        holder or task,
        lambda on_tick, tick: check.run_check(ctx, task, log_name=name, on_tick=on_tick, tick=tick),
    )


def while_held(
    ctx: Context, holder: Task, run_one: Callable[[Callable[[], bool], float], Checked]
) -> Checked:
    """Return what `run_one` does, which is given what keeps the claim of `holder` alive, and how often.

    Raises LeaseLostError if it is lost meanwhile.
    """
    lost: list[LeaseLostError] = []

    def go_on() -> bool:
        try:
            renew(ctx, holder)
        except LeaseLostError as error:
            lost.append(error)
        return not lost

    checked = run_one(go_on, max(1.0, ctx.lease_seconds / RENEWALS_PER_LEASE))
    if lost:
        raise lost[0]
    return checked


def renew(ctx: Context, task: Task) -> None:
    """Give the claim a new lease where it has one. Raises LeaseLostError.

    A list that cannot be had at this moment is no reason to end hours of work: there is a next time, and the
    claim is asked for again before anything is recorded.
    """
    with suppress(HeldError, ConfigError, StateUnreadableError):
        questions = ctx.store.ask()
        outcome.still_claimed(questions, task)
        if not questions.concurrent:
            return
        with ctx.store.transaction() as tx:
            current = outcome.require_claim(tx, task)
            tx.replace(transitions.renew(current, now=tx.now, lease_seconds=ctx.lease_seconds))

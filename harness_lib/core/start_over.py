"""Restore a list that was lost, or begin an empty one if a person says so and keep the old one."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.core import manual_edit, sessions, trust_policy
from harness_lib.core.context import Context
from harness_lib.errors import RefusedError, StateUnreadableError


def restore(ctx: Context) -> bool:
    """Put a list back whose file is gone, if an earlier state is left anywhere; return whether it was."""
    if ctx.store.exists():
        return False
    try:
        ctx.store.ask()
    except StateUnreadableError:
        return False
    with ctx.store.transaction() as tx:
        # Entering it restores the list, and warns of that.
        if tx.holds_agents():
            tx.on_commit(lambda: ctx.store.switch_hooks(on=True))
    return True


def begin_anew(ctx: Context) -> str:
    """Put an empty list in the place of the one that is there; return the name of the file that keeps that.

    Raises HeldError (somebody works on it), RefusedError (a task is in progress).
    """
    with ctx.store.transaction() as tx:
        sessions.refuse_other(tx, ctx)
        working = next(iter(tx.in_progress()), None)
        if working is not None:
            ways = (typed.harness("finish", working.id), typed.harness("release", working.id))
            raise RefusedError(
                f"{working.id} is in progress: without the list nobody would know whose work stands there.",
                f"End it first: {', or '.join(ways)}",
            )
        mine = sessions.mine(tx, ctx)
        if mine is not None:
            sessions.close(tx, mine)
        kept = tx.start_over()
        manual_edit.log(tx, ctx, f"emptied the old list is kept in {kept}")
        tx.on_commit(lambda: trust_policy.note(ctx, tx))
        tx.on_commit(lambda: ctx.store.switch_hooks(on=True))
    return kept

"""Do what follows every edit by a person: log it, keep the trust, wake the hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness_lib.core import add_tasks, sessions, trust_policy
from harness_lib.core.context import Context
from harness_lib.rules import halting, leases
from harness_lib.state.api import Tx
from harness_lib.system.processes import owner
from harness_lib.task import Session, Task


@contextmanager
def change(ctx: Context) -> Iterator[Tx]:
    """Open a transaction for a change that a person wants.

    Trust that the list has goes over to its new commands, and the marker comes back if there was no work left
    before. It stays away where there was: then somebody has paused the list.
    """
    trust_policy.prepare(ctx)
    with ctx.store.transaction() as tx:
        mine = add_tasks.may_trust(ctx, tx)
        had_work = tx.holds_agents()
        yield tx
        if mine and tx.changed:
            tx.on_commit(lambda: trust_policy.note(ctx, tx))
        if not had_work and tx.holds_agents():
            tx.on_commit(lambda: ctx.store.switch_hooks(on=True))


def log(tx: Tx, ctx: Context, text: str, task_id: str | None = None) -> None:
    """Log `text`, which begins with a participle, and who did it.

    The protocol has no type for changes to the list itself; WARN is what whoever reads a log looks at.
    """
    done, _, details = text.partition(" ")
    who = owner.in_agent(ctx.env) or sessions.program_above(tx) or "hand"
    tx.log("WARN", f"{done} by {who}{details and f': {details}'}", session=tx.session_count, task=task_id)


def lift_halts(tx: Tx, task: Task) -> None:
    """Let the session that was halted because of this task's configuration go on."""
    for session in tx.sessions():
        if halting.is_lifted_by_an_edit(session.halt_kind) and _concerns(tx, session, task):
            lift_halt(tx, session)


def _concerns(tx: Tx, session: Session, task: Task) -> bool:
    return not tx.concurrent or leases.works_for(task.claimed_by, session.worker)


def lift_halt(tx: Tx, session: Session) -> None:
    """Let `session` go on."""
    tx.replace_session(session._replace(halt=None, halt_kind=None))

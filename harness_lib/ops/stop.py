"""`harness stop`: the end of a session, at any moment (seed "Session Statistics")."""

from __future__ import annotations

from harness_lib.errors import HeldError, UsageError
from harness_lib.ops import holding, marker, sessions
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.rules import stats
from harness_lib.task import Session


def run(ctx: Context, number: int | None = None) -> Reply:
    """End this worker's session, or session `number`; none of its own to end is fine."""
    holding.refuse_supervised(ctx, "harness stop")
    with ctx.store.transaction() as tx:
        opened = tx.state.sessions or ()
        if number is None:
            session = sessions.mine(tx.state, ctx)
        else:
            session = next((s for s in opened if s.number == number), None)
            if session is None:
                open_ones = ", ".join(str(s.number) for s in opened) or "none"
                raise UsageError(f"Session {number} is not open (open: {open_ones}).", "See: harness status")
            _refuse_run(session)
        if session is None:
            return Reply("stop", "No session of yours is open.", next="harness start")
        held = holding.held_by_me(tx.state, ctx) if number is None else None
        sessions.close(tx, session)
        marker.lower_when_finished(tx, ctx.root)
        line = stats.line(tx.state)
    lines = [f"session {session.number} has ended; {line}"]
    if held:
        lines.append(f"{held.id} stays in progress with its work in place; the next session recovers it.")
    return Reply("stop", "\n".join(lines), session=session.number, task=held, next="harness start")


def _refuse_run(session: Session) -> None:
    """Raise HeldError if a `harness run` that goes on has the session: it would go on without one."""
    if sessions.is_live_run(session):
        raise HeldError(
            f"Session {session.number} is of a harness run that goes on (pid {session.pid}).",
            f"A person can end it: {sessions.how_to_end(session)}",
        )

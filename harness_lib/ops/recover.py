"""`harness recover`: what an earlier session left in progress."""

from __future__ import annotations

from harness_lib.ops import holding, recovering, sessions, start, stopped
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply


def run(ctx: Context) -> Reply:
    """Recover every interrupted task that this worker may; opens a session if none is."""
    holding.refuse_supervised(ctx, "harness recover")
    state = ctx.store.read_to_change().state
    session = sessions.mine(state, ctx)
    if session is None or not start.is_open(session, state, ctx):
        opened = start.open_session(ctx)
        if opened.session is None:
            return stopped.reply("recover", ctx.store.read().state, opened.stop, opened.recovered)
        told, warnings = opened.recovered, opened.warnings
        session = opened.session
    else:
        report = recovering.interrupted(ctx, session, fresh=False)
        told, warnings = report.told, report.warnings
    held = holding.held_by_me(ctx.store.read().state, ctx)
    return Reply(
        "recover",
        "\n".join(told) or "Nothing was interrupted.",
        session=session.number,
        task=held,
        next=holding.finish(ctx, held) if held else "harness claim",
        warnings=warnings,
        extra={"recovered": list(told)},
    )

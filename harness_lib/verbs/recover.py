"""`harness recover`: recover tasks that an earlier session left in progress."""

from __future__ import annotations

from argparse import Namespace

from harness_lib.attempts import open_session, reconcile
from harness_lib.core import ownership, sessions, stops
from harness_lib.core.context import Context, Reply
from harness_lib.errors import UsageError

SUMMARY = "recover interrupted work"
EXAMPLE = "harness recover"
HELP_ORDER = 180


def answer(ctx: Context, _args: Namespace) -> Reply:
    """Recover every interrupted task that this worker may recover; open a session if there is none."""
    questions = ctx.store.ask_to_change()
    if not questions.has_had_sessions:
        raise UsageError(
            f"{ctx.store.list_file} has no `sessions`: only agents of the legacy protocol "
            "have worked on it, and it is "
            "still theirs.",
            "Take it over, which recovers what was interrupted: harness start",
        )
    ownership.refuse_late(ctx, questions)
    session = ctx.own_session(questions)
    if not session or not open_session.is_open(session, questions, ctx):
        opened = open_session.open_session(ctx)
        if not opened.session:
            return stops.reply(ctx.ask(), opened.stop, opened.recovered)
        recovered, warnings = opened.recovered, opened.warnings
        session = opened.session
    else:
        ctx.session = session
        report = reconcile.reclaim_interrupted(ctx, fresh=False)
        recovered, warnings = report.recovered, report.warnings
    questions = ctx.ask()
    held = ctx.held(questions)
    claim = sessions.unless_held(questions, ctx, sessions.CLAIM)
    return Reply(
        "\n".join(recovered) or "Nothing was interrupted.",
        session=session.number,
        task=held,
        next=ownership.finish_command(ctx, held) if held else claim,
        warnings=warnings,
        extra={"recovered": list(recovered)},
    )

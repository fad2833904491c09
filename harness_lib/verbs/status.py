"""`harness status`: where the list stands; reads without a lock."""

from __future__ import annotations

from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.runs import overview
from harness_lib.runs.run_snapshot import Seen
from harness_lib.state import codec


def run(ctx: Context, *, everything: bool = False) -> Reply:
    """Return counts, a line per task, the end of the log, and the sessions.

    Unless `everything` is wanted, the interesting tasks come first and the rest is a number.
    """
    return answer(ctx, overview.gather(ctx, None if everything else overview.SHOWN))


def answer(ctx: Context, view: overview.View) -> Reply:
    """Return `view` as the reply of the verb."""
    now = ctx.clock.now().timestamp()
    return Reply(
        "status",
        "\n".join(overview.plain(view, now)),
        next=view.next,
        warnings=view.warnings,
        extra={
            "root": str(ctx.root.path),
            "counts": view.counts._asdict(),
            "tasks": [codec.encode_task(task) for task in view.shown],
            "more": view.counts.total - len(view.shown),
            "log": list(view.log),
            "session_count": view.session_count,
            "last_session": view.last_session,
            "sessions": list(view.people),
            "halts": list(view.halts),
            "look_at": list(view.look_at),
            "unproven": list(view.unproven),
            "rechecks": list(view.rechecks),
            "active": ctx.store.hooks_are_on(),
            "runs": [_run(seen, now) for seen in view.runs],
        },
    )


def _run(seen: Seen, now: float) -> dict[str, object]:
    return {
        "pid": seen.pid,
        "workers": [row._asdict() for row in seen.state.rows.values()],
        "spent": seen.state.spent(now)._asdict(),
    }

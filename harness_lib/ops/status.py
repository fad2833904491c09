"""`harness status`: where the list stands; reads without a lock (seed "Status Command")."""

from __future__ import annotations

from dataclasses import asdict

from harness_lib.ops import holding
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.rules import graph, selection, stats
from harness_lib.state import codec
from harness_lib.system import log
from harness_lib.task import State, Task

LOG_LINES = 5
SHOWN = 20
ORDER = ("in_progress", "failed", "pending", "completed")


def run(ctx: Context, *, everything: bool = False) -> Reply:
    """Return counts, a line per task, the end of the log, and the sessions.

    Unless `everything` is wanted the interesting tasks come first and the rest is a number.
    """
    snapshot = ctx.store.read()
    state = snapshot.state
    counts = stats.count(state)
    shown = list(state.tasks) if everything else interesting(state)[:SHOWN]
    lines = [stats.line(state), *(one_line(task) for task in shown)]
    if len(shown) < len(state.tasks):
        lines.append(f"… and {len(state.tasks) - len(shown)} more (harness status --all)")
    tail = log.tail(ctx.root.log, LOG_LINES)
    lines += ["log:", *(f"  {line}" for line in tail)] if tail else []
    lines.append(f"sessions: {state.session_count}, last {state.last_session or 'none'}")
    lines += [f"open: session {s.number} of {s.worker} since {s.started_at}" for s in state.sessions or ()]
    return Reply(
        "status",
        "\n".join(lines),
        next=upcoming(ctx, state),
        warnings=snapshot.warnings,
        extra={
            "root": str(ctx.root.path),
            "counts": asdict(counts),
            "tasks": [codec.encode_task(task) for task in shown],
            "more": len(state.tasks) - len(shown),
            "log": tail,
            "session_count": state.session_count,
            "last_session": state.last_session,
            "active": ctx.root.marker.exists(),
        },
    )


def upcoming(ctx: Context, state: State) -> str | None:
    """Return the command that goes on with the list."""
    held = holding.held_by_me(state, ctx)
    if held:
        return f"harness finish {held.id}"
    if not state.tasks:
        return 'harness add "what is to be done" --validate "command that proves it"'
    return "harness start" if selection.pick(state, ctx.clock.now()) else None


def interesting(state: State) -> list[Task]:
    """Return the tasks with those first that a person would look for: at work, failed, waiting, done."""
    return sorted(state.tasks, key=lambda task: (ORDER.index(task.status), graph.id_key(task.id)))


def one_line(task: Task) -> str:
    """Return the seed's line: `[status] task-id: title (attempts/max_attempts)`."""
    title = " ".join(task.title.split())
    return f"[{task.status}] {task.id}: {title} ({task.attempts}/{task.max_attempts})"

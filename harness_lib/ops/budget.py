"""`harness budget`: what a run may use up and has used up; its limits can be changed while it goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from harness_lib.errors import HarnessError, UsageError
from harness_lib.ops import board_file, holding
from harness_lib.ops.board_file import Seen
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.rules import budget
from harness_lib.rules.budget import Budget
from harness_lib.system import atomic


def run(ctx: Context, changes: Mapping[str, float]) -> Reply:
    """Show the limits and what was spent; change those named in `changes` first (0 is no limit).

    Each run counts for itself what it has spent; runs of one concurrent list share the limits.
    Raises UsageError: no run goes on, an amount is none, or an agent would raise its own limits.
    """
    found = board_file.runs(ctx)
    if not found:
        raise UsageError(
            "No run goes on in this list, so there is no budget to look at.",
            "Give the next one its limits: harness run --max-cost 10 --max-hours 8",
        )
    if changes:
        holding.refuse_supervised(ctx, "another limit")
        write(ctx, budget.read({**budget.write(read(ctx)), **changes}))
    limits = read(ctx)
    now = ctx.clock.now().timestamp()
    return Reply(
        "budget",
        "\n".join([line for seen in found for line in _lines(seen, limits, now)]),
        next="harness status --watch",
        extra={
            "limits": budget.write(limits),
            "runs": [{"pid": seen.pid, "spent": asdict(seen.board.spent(now))} for seen in found],
        },
    )


def _lines(seen: Seen, limits: Budget, now: float) -> list[str]:
    used = budget.told(limits, seen.board.spent(now))
    return [f"the run of process {seen.pid}:", *(f"  {line}" for line in used), f"  {_of_task(limits)}"]


def _of_task(limits: Budget) -> str:
    return f"each task: {budget.task_told(limits)}"


def read(ctx: Context) -> Budget:
    """Return the limits of runs as they are now."""
    try:
        return budget.read(json.loads(ctx.root.budget.read_bytes()))
    except (FileNotFoundError, ValueError, HarnessError):
        # Below `.harness/` everything may be lost at any time: then there are no limits until the next word.
        return Budget()


def write(ctx: Context, limits: Budget) -> None:
    """Make `limits` those of the runs that go on."""
    atomic.make_directory(ctx.root.budget.parent)
    atomic.write(ctx.root.budget, json.dumps(budget.write(limits)).encode(), durable=False)


def begin(ctx: Context, limits: Budget) -> None:
    """Give a run that begins its limits; beside another one's they are added to what is there."""
    others = budget.write(read(ctx)) if board_file.runs(ctx) else {}
    write(ctx, budget.read({**others, **budget.write(limits)}))

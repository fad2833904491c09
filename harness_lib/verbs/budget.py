"""`harness budget`: show or change the limits of a run while it goes on.

The run keeps its limits itself; a file below `.harness/` only carries requests for new ones.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from harness_lib.core import ownership, sessions
from harness_lib.core.context import Context, Reply
from harness_lib.errors import UsageError
from harness_lib.rules import run_state
from harness_lib.runs import run_files
from harness_lib.terminal import options
from harness_lib.text import Strings

SUMMARY = "show the limits of a run that is going on, or change them"
EXAMPLE = "harness budget --max-cost 20"
HELP_ORDER = 230

# A run looks for requests several times a second, but not during its final checks.
PATIENCE_SECONDS = 3.0
POLL_SECONDS = 0.05


def arguments(parser: ArgumentParser) -> None:
    for name, words in options.LIMITS.items():
        options.add_setting(parser, name, words)


def answer(ctx: Context, args: Namespace) -> Reply:
    """Show limits and spending; first change the limits that were typed (0: no limit).

    Each run has its own limits and its own count; a change is for all active runs.
    """
    fields = run_state.Budget._fields
    changes = {name: value for name in fields if (value := getattr(args, name)) is not None}
    running = run_files.running(ctx)
    if not running:
        raise UsageError(
            "No run is active on this list.",
            "Give the next one its limits: harness run --max-cost 10 --max-hours 8",
        )
    warnings: Strings = ()
    if changes:
        ownership.refuse_supervised(ctx, "another limit")
        run_state.read_budget(changes)
        run_files.ask(ctx, running, changes)
        running, warnings = _wait_until_taken(ctx, changes)
    now = ctx.clock.time()
    runs = [
        {
            "pid": seen.pid,
            "spent": seen.state.spent(now)._asdict(),
            "limits": run_state.write_budget(seen.state.limits),
        }
        for seen in running
    ]
    return Reply(
        "\n".join([line for seen in running for line in _lines(seen, now)]),
        next=sessions.watching(ctx),
        warnings=warnings,
        extra={"runs": runs, **({"limits": runs[0]["limits"]} if len(runs) == 1 else {})},
    )


def _lines(seen: run_files.Seen, now: float) -> list[str]:
    limits = seen.state.limits
    used = run_state.usage(limits, seen.state.spent(now))
    task = f"each attempt: {run_state.task_limits(limits)}"
    return [f"the run of process {seen.pid}:", *(f"  {line}" for line in used), f"  {task}"]


def _wait_until_taken(ctx: Context, changes: Mapping[str, float]) -> tuple[list[run_files.Seen], Strings]:
    """Wait until the runs have taken the change; return them, and a message about those that have not."""
    until = ctx.clock.monotonic() + PATIENCE_SECONDS
    while True:
        running = run_files.running(ctx)
        slow = [run for run in running if run_state.changed(run.state.limits, changes) != run.state.limits]
        if not slow or ctx.clock.monotonic() > until:
            break
        # Again, as another request of the same moment may have taken its place.
        run_files.ask(ctx, slow, changes)
        ctx.clock.sleep(POLL_SECONDS)
    warning = "The run of process {} has not taken this yet: it may be at its final checks."
    return running, tuple(warning.format(seen.pid) for seen in slow)

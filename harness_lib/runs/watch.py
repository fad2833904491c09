"""Notice that the list has changed, without a lock, for `harness status --watch`."""

from __future__ import annotations

from collections.abc import Iterator

from harness_lib.core import rechecked
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, EnvSetupError, StateUnreadableError
from harness_lib.runs import overview
from harness_lib.runs.overview import View
from harness_lib.state import run_files

POLL_SECONDS = 0.5
LOOK_ANYWAY_SECONDS = 10.0
NAMED = 5


def follow(ctx: Context, limit: int | None) -> Iterator[View]:
    """Yield the list now and whenever it looks different, until nothing is left to do.

    `limit` as in `overview.gather`. A list that cannot be read for a while (a person is editing it)
    is the view before with a warning.
    """
    seen = _all_stamps(ctx)
    view = overview.gather(ctx, limit)
    yield view
    while view.runs or not view.is_finished:
        seen = _wait_for_change(ctx, seen)
        try:
            current = overview.gather(ctx, limit)
        except (ConfigError, EnvSetupError, StateUnreadableError) as error:
            current = view._replace(warnings=(error.message,))
        if current != view:
            yield current
        view = current


def difference(before: View, after: View) -> str | None:
    """Return one line about what has happened between two views; None if no task has changed."""
    if after.warnings != before.warnings and after.warnings:
        return f"warning: {after.warnings[0]}"
    old = before.progress
    changed = [each.task for each in after.progress.values() if old.get(each.task.id) != each]
    known = set(before.rechecks)
    red = [line for line in after.rechecks if line.startswith(rechecked.RED) and line not in known]
    if not changed and not red and len(old) == len(after.progress):
        return None
    named = [overview.one_line(task) for task in changed[:NAMED]]
    more = [f"and {len(changed) - NAMED} more"] if len(changed) > NAMED else []
    return "; ".join([overview.headline(after.counts), *named, *more, *red])


def _wait_for_change(ctx: Context, before: list[object]) -> list[object]:
    """Return when a file of the list has changed, or after a while: leases end and owners die silently."""
    until = ctx.clock.monotonic() + LOOK_ANYWAY_SECONDS
    while (seen := _all_stamps(ctx)) == before and ctx.clock.monotonic() < until:
        ctx.clock.sleep(POLL_SECONDS)
    return seen


def _all_stamps(ctx: Context) -> list[object]:
    """Return what changes with the list or with the state of a run."""
    return [ctx.store.stamp(), *run_files.stamps(ctx.root, "board")]

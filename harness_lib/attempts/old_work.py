"""Find and take away old logs and old rescued work."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness_lib.attempts import check
from harness_lib.attempts.rescue_refs import RESCUE_REFS
from harness_lib.core import manual_edit
from harness_lib.core.context import Context
from harness_lib.rules import outdated
from harness_lib.rules.outdated import Old
from harness_lib.system.files import atomic, listing
from harness_lib.system.git import rescue_apply
from harness_lib.system.git.rescue_apply import Rescue

MEGABYTE = 1024 * 1024


# Of logs: how old they get, and how many megabytes there are in all.
DAYS = 30.0


MEGABYTES = 500


def by_itself(ctx: Context) -> str | None:
    """Take the logs that nobody needs any more, at the end of a run; tell how many, in a sentence.

    Rescued work is never taken by itself.
    """
    taken = outdated.outdated(logs(ctx), ctx.clock.now().timestamp(), DAYS, MEGABYTES * MEGABYTE)
    remove(ctx, taken, [])
    size = sum(each.size for each in taken) / MEGABYTE
    old = f"older than {DAYS:g} days, or the oldest beyond {MEGABYTES} MB in all"
    return f"{len(taken)} logs of {size:.1f} MB were taken away: {old}" if taken else None


def logs(ctx: Context) -> Iterator[Old]:
    """Yield every log but those of tasks that somebody works on."""
    questions = ctx.store.ask()
    busy = {check.safe_name(task.id) for task in questions.in_progress()}
    for path in listing.below(ctx.root.logs, "*"):
        name = path.relative_to(ctx.root.logs)
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode) and name.parts[0] not in busy:
                yield Old(str(name), info.st_mtime, info.st_size)


def rescues(ctx: Context, now: float, days: float) -> list[Rescue]:
    """Return the rescued work that is older than `days` at `now`, in seconds since the epoch."""
    rescued = rescue_apply.listed(ctx.git, RESCUE_REFS)
    return [each for each in rescued if now - each.at > days * outdated.SECONDS_PER_DAY]


def remove(ctx: Context, logs: tuple[Old, ...], works: list[Rescue]) -> None:
    """Remove these logs and these refs; what the refs named is written to our log first."""
    if works:
        # The names bring the work back, so they are on record before the refs go.
        with manual_edit.change(ctx) as tx:
            for each in works:
                manual_edit.log(tx, ctx, f"dropped {each.ref} {each.oid}")
    for each in works:
        ctx.git.delete_ref(each.ref, each.oid)
    for log in logs:
        atomic.remove(Path(ctx.root.logs, log.name))

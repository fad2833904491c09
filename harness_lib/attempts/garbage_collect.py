"""Remove what killed commands and sessions have left behind, once it is old enough.

A death costs no work, but it leaves temporary files, directories of locks that were just given up, copies of
untracked files for an attempt that never began or has ended, and notes about an agent that is gone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness_lib.attempts import baseline, check, rescue_refs
from harness_lib.attempts.rescue_refs import RESCUE_REFS
from harness_lib.core import rights
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules import stats
from harness_lib.rules.stats import Old
from harness_lib.system.files import atomic, directories
from harness_lib.system.git import locks, rescue_apply
from harness_lib.system.git.rescue_apply import Rescue
from harness_lib.system.mkdir_lock import SeedLock
from harness_lib.system.place import session_notes

# An agent may be left alone over a long week-end and be held no longer than before.
NOTES_SECONDS = 7 * 24 * 3600.0
MEGABYTE = 1024 * 1024
# Limits of logs: their age, and their size in megabytes together.
DAYS = 30.0
MEGABYTES = 500


def sweep(ctx: Context) -> tuple[str, ...]:
    """Remove what is older than an hour (notes: a week) and belongs to no living command; return warnings."""
    try:
        _temporary_files(ctx)
        SeedLock(ctx.root.path, ctx.clock).sweep()
        _copies(ctx)
        session_notes.sweep(os.fspath(ctx.root.path), ctx.clock.now().timestamp() - NOTES_SECONDS)
    except (OSError, HarnessError) as error:
        # They do no harm: the next session tries again.
        return (f"What killed commands had left could not be removed: {error}",)
    return ()


def _temporary_files(ctx: Context) -> None:
    ctx.store.sweep()
    for path, _, _ in os.walk(ctx.root.private):
        atomic.sweep(Path(path), "*")
    # Attempts are recovered from here in other work trees, too.
    for directory in (ctx.git.git_dir, ctx.git.common_dir, *(ctx.git.common_dir / "worktrees").glob("*/")):
        atomic.sweep(directory, "harness-*")


def _copies(ctx: Context) -> None:
    in_use = {task.gate.before for task in ctx.store.ask().in_progress() if task.gate}
    # Held even if there is nothing to remove: this also clears the locks of a killed git.
    with locks.hold(ctx.git):
        for ref, oid in _old_copies(ctx):
            if oid not in in_use:
                ctx.git.delete_ref(ref, oid)


def _old_copies(ctx: Context) -> Iterator[tuple[str, str]]:
    """Yield (ref, commit) of the copies for attempts of this list; a repository may hold several lists."""
    limit = ctx.clock.now().timestamp() - atomic.STALE_SECONDS
    shape = "%(refname) %(objectname) %(committerdate:unix) %(contents:subject)"
    for line in ctx.git.lines("for-each-ref", f"--format={shape}", rescue_refs.BEFORE_REFS):
        ref, oid, written, subject = line.split(" ", 3)
        if int(written) < limit and subject == baseline.before_subject(ctx.root.path):
            yield ref, oid


def by_itself(ctx: Context) -> str | None:
    """Remove old logs at the end of a run; return a sentence that says how many.

    Rescued work is never removed without the user.
    """
    taken = stats.outdated(logs(ctx), ctx.clock.now().timestamp(), DAYS, MEGABYTES * MEGABYTE)
    remove(ctx, taken, [])
    size = sum(each.size for each in taken) / MEGABYTE
    old = f"older than {DAYS:g} days, or the oldest beyond {MEGABYTES} MB in all"
    return f"{len(taken)} logs of {size:.1f} MB were taken away: {old}" if taken else None


def logs(ctx: Context) -> Iterator[Old]:
    """Yield every log, except those of tasks in progress."""
    questions = ctx.store.ask()
    busy = {check.safe_name(task.id) for task in questions.in_progress()}
    for path in directories.below(ctx.root.logs, "*"):
        name = path.relative_to(ctx.root.logs)
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode) and name.parts[0] not in busy:
                yield Old(str(name), info.st_mtime, info.st_size)


def rescues(ctx: Context, now: float, days: float) -> list[Rescue]:
    """Return the rescued work that is older than `days` at `now`, in seconds since the epoch."""
    rescued = rescue_apply.listed(ctx.git, RESCUE_REFS)
    return [each for each in rescued if now - each.at > days * stats.SECONDS_PER_DAY]


def remove(ctx: Context, logs: tuple[Old, ...], works: list[Rescue]) -> None:
    """Remove these logs and refs; what the refs named is written to the log first."""
    if works:
        # The names bring the work back, so they are recorded before the refs are removed.
        with rights.change(ctx) as tx:
            for each in works:
                rights.log(tx, ctx, f"dropped {each.ref} {each.oid}")
    for each in works:
        ctx.git.delete_ref(each.ref, each.oid)
    for log in logs:
        atomic.remove(Path(ctx.root.logs, log.name))

"""Take away what killed commands and sessions have left behind, once it is old enough to be nobody's.

A death costs no work, but it leaves temporary files, directories of locks that were just given up, copies of
untracked files for an attempt that never began or has ended, and notes about an agent that is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harness_lib.attempts import baseline, rescue_refs
from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.system.files import atomic
from harness_lib.system.git import locks
from harness_lib.system.locks.mkdir_lock import SeedLock
from harness_lib.system.place import session_notes

# An agent may be left alone over a long week-end and be held no longer than before.
NOTES_SECONDS = 7 * 24 * 3600.0


def sweep(ctx: Context) -> tuple[str, ...]:
    """Remove what is older than an hour (notes: a week) and belongs to no living command; return warnings."""
    try:
        _temporary_files(ctx)
        SeedLock(ctx.root.path, ctx.clock).sweep()
        _copies(ctx)
        session_notes.sweep(os.fspath(ctx.root.path), ctx.clock.now().timestamp() - NOTES_SECONDS)
    except (OSError, HarnessError) as error:
        # They are in nobody's way: the next session tries again.
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
    # Held even if there is none: that also takes away the locks of a git that was killed.
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

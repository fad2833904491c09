"""`harness tidy`: show what of old logs and old rescued work would go, and take it when a person says so.

Logs tell what happened and can be made again; rescued work cannot, so it goes by its age only, and only
where its age is named.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness_lib import typed
from harness_lib.attempts import check
from harness_lib.attempts.rescue_refs import RESCUE_REFS
from harness_lib.core import manual_edit, quoting, rights
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.rules import outdated
from harness_lib.rules.outdated import Old
from harness_lib.system.files import atomic
from harness_lib.system.git import rescue_apply
from harness_lib.system.git.rescue_apply import Kept

MEGABYTE = 1024 * 1024
SHOWN = 20

# Of logs: how old they get, and how many megabytes there are in all.
DAYS = 30.0
MEGABYTES = 500


def run(ctx: Context, *, days: float, megabytes: int, rescues: float | None, take: bool) -> Reply:
    """Show logs older than `days` or beyond `megabytes` in all, and rescues older than `rescues` days.

    With `take` they go; the names of dropped commits are in the log, with which git brings them back.
    Raises RefusedError: an agent would take them.
    """
    command = typed.harness("tidy", "--yes")
    if take:
        rights.require_person(ctx, "old logs and rescued work", command)
    now = ctx.clock.now().timestamp()
    logs = outdated.outdated(_logs(ctx), now, days, megabytes * MEGABYTE)
    works = _rescues(ctx, now, rescues) if rescues is not None else []
    if take:
        _take(ctx, logs, works)
    size = sum(each.size for each in logs) / MEGABYTE
    how = "were taken" if take else "would go"
    lines = [f"{len(logs)} logs of {size:.1f} MB and {len(works)} rescues {how}"]
    lines += [f"  {quoting.one_line(row, 300)}" for row in _rows(logs, works)[:SHOWN]]
    more = len(logs) + len(works) - SHOWN
    lines += [f"  … and {more} more"] if more > 0 else []
    if not take and rescues is None:
        lines.append(f"rescued work stays, unless its age is named: {typed.harness('tidy', '--rescues', 90)}")
    return Reply(
        "tidy",
        "\n".join(lines),
        next="harness status" if take or not (logs or works) else _again(days, megabytes, rescues),
        extra={"logs": len(logs), "bytes": sum(each.size for each in logs), "rescues": len(works)},
    )


def by_itself(ctx: Context) -> str | None:
    """Take the logs that nobody needs any more, at the end of a run; tell how many, in a sentence.

    Rescued work is never taken by itself.
    """
    logs = outdated.outdated(_logs(ctx), ctx.clock.now().timestamp(), DAYS, MEGABYTES * MEGABYTE)
    _take(ctx, logs, [])
    size = sum(each.size for each in logs) / MEGABYTE
    old = f"older than {DAYS:g} days, or the oldest beyond {MEGABYTES} MB in all"
    return f"{len(logs)} logs of {size:.1f} MB were taken away: {old}" if logs else None


def _again(days: float, megabytes: int, rescues: float | None) -> str:
    old = () if rescues is None else ("--rescues", f"{rescues:g}")
    return typed.harness("tidy", "--days", f"{days:g}", "--megabytes", megabytes, *old, "--yes")


def _logs(ctx: Context) -> Iterator[Old]:
    """Yield every log but those of tasks that somebody works on."""
    questions = ctx.store.ask()
    busy = {check.safe_name(task.id) for task in questions.in_progress()}
    for path in ctx.root.logs.rglob("*"):
        name = path.relative_to(ctx.root.logs)
        # `.harness/` may be deleted at any time.
        with suppress(FileNotFoundError):
            found = path.lstat()
            if stat.S_ISREG(found.st_mode) and name.parts[0] not in busy:
                yield Old(str(name), found.st_mtime, found.st_size)


def _rescues(ctx: Context, now: float, days: float) -> list[Kept]:
    found = rescue_apply.listed(ctx.git, RESCUE_REFS)
    return [each for each in found if now - each.at > days * outdated.SECONDS_PER_DAY]


def _take(ctx: Context, logs: tuple[Old, ...], works: list[Kept]) -> None:
    if works:
        # The names bring the work back, so they are on record before the refs go.
        with manual_edit.change(ctx) as tx:
            for each in works:
                manual_edit.log(tx, ctx, f"dropped {each.ref} {each.oid}")
    for each in works:
        ctx.git.delete_ref(each.ref, each.oid)
    for log in logs:
        atomic.remove(Path(ctx.root.logs, log.name))


def _rows(logs: tuple[Old, ...], works: list[Kept]) -> list[str]:
    return [f"{each.name} ({each.size / MEGABYTE:.1f} MB)" for each in logs] + [
        f"{each.ref} {each.oid[:12]} {each.subject}" for each in works
    ]

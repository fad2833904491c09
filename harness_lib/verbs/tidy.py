"""`harness tidy`: list old logs and old rescued work, and delete them when the user agrees.

Rescued work cannot be made again, so it is deleted only if the user names an age.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.attempts import rescue_refs
from harness_lib.core import quoting, rights
from harness_lib.core.context import Context, Reply
from harness_lib.terminal import options
from harness_lib.text import counted, first

SUMMARY = "delete old logs and rescued work (shows them first; deletes with --yes)"
EXAMPLE = "harness tidy --rescues 90"
HELP_ORDER = 450

SHOWN = 20


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--rescues",
        metavar="DAYS",
        type=options.amount,
        help="rescued work older than this, too (default: none)",
    )
    parser.add_argument("--yes", action="store_true", help="delete them; without it they are only shown")


def answer(ctx: Context, args: Namespace) -> Reply:
    """List logs older than 30 days, the oldest beyond 500 MB in all, and old rescued work.

    With `--yes` they are deleted; the log keeps the hashes of dropped commits, by which git can restore them.
    """
    if args.yes:
        rights.require_user(ctx, "What becomes of old logs and work", typed.harness("tidy", "--yes"))
    now = ctx.clock.time()
    logs = rescue_refs.old_logs(ctx)
    works = rescue_refs.rescues(ctx, now, args.rescues) if args.rescues is not None else []
    needed = rescue_refs.needed(ctx.ask().search())
    works = [each for each in works if each.ref not in needed]
    if args.yes:
        rescue_refs.remove(ctx, logs, works)
    size = sum(each.size for each in logs) / rescue_refs.MEGABYTE
    how = "were deleted" if args.yes else "would be deleted"
    lines = [f"{counted(len(logs), 'log')} of {size:.1f} MB and {counted(len(works), 'rescue')} {how}"]
    rows = [f"{each.name} ({each.size / rescue_refs.MEGABYTE:.1f} MB)" for each in logs]
    rows += [f"{each.ref} {each.oid[:12]} {each.subject}" for each in works]
    lines += [f"  {quoting.one_line(row, 300)}" for row in first(rows, SHOWN)]
    if not args.yes and args.rescues is None:
        lines.append(f"rescued work stays, unless its age is named: {typed.harness('tidy', '--rescues', 90)}")
    then = "harness status"
    if (logs or works) and not args.yes:
        old = () if args.rescues is None else ("--rescues", f"{args.rescues:g}")
        then = typed.harness("tidy", *old, "--yes")
    return Reply(
        "\n".join(lines),
        next=then,
        extra={"logs": len(logs), "bytes": sum(each.size for each in logs), "rescues": len(works)},
    )

"""`harness validate`: run checks; on a clean checkout of what is committed, record what they say."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.verbs import validate

SUMMARY = "run checks, and record nothing but what they say of a clean checkout"
EXAMPLE = "harness validate task-001"
HELP_ORDER = 260


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", nargs="?", help="the task")
    parser.add_argument("--all", action="store_true", help="every task, the completed ones too")
    parser.add_argument(
        "--committed",
        action="store_true",
        help="with --all, the final check: the checks of all completed tasks run on a clean checkout of what "
        "is committed, and what they say is recorded; for an agent it ends after 90 seconds, between two "
        "checks, and says what to type",
    )
    parser.add_argument(
        "--range",
        metavar="A..B",
        help="with --committed, for CI: the checks of the tasks completed in these commits run on a clean "
        "checkout of B, and nothing is recorded",
    )


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness validate`."""
    if not args.committed and args.range is None:
        return validate.run(ctx, args.id, everything=args.all)
    if args.id is not None or not args.committed or not (args.all or args.range):
        raise UsageError(
            "--committed checks all completed tasks, or those of a range of commits.",
            "Type: harness validate --all --committed, or: harness validate --committed --range A..B",
        )
    return validate.in_range(ctx, args.range) if args.range else validate.final_check(ctx)

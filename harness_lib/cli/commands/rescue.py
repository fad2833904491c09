"""`harness rescue`: list, show, apply or drop the work of failed attempts; save that of a lost claim."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib import typed
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.verbs import rescue

SUMMARY = "the work of failed attempts: list, show, apply, drop; save that of a lost claim"
EXAMPLE = "harness rescue show task-001"
HELP_ORDER = 280


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=("list", "show", "apply", "save", "drop"),
        default="list",
        help="default: list",
    )
    parser.add_argument(
        "what",
        nargs="?",
        help="a ref, ID/ATTEMPT, or an id for the newest of that task (save: an id, drop: no id)",
    )
    parser.add_argument("only", nargs="*", metavar="PATH", help="with apply: only these, not everything")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness rescue`."""
    if args.only and args.action != "apply":
        raise UsageError(f"rescue {args.action} takes one at a time.", "Type it once for each.")
    if args.action == "list":
        return rescue.show_all(ctx, args.what)
    if args.what is None:
        # What is dropped is named exactly, and what is saved has no attempt of its own yet.
        example = "task-001/1" if args.action == "drop" else "task-001"
        raise UsageError(
            "Of which attempt?",
            f"{typed.harness('rescue', args.action, example)}, or see: harness rescue list",
        )
    if args.action == "apply":
        return rescue.apply(ctx, args.what, tuple(args.only))
    if args.action == "save":
        return rescue.save(ctx, args.what)
    return rescue.show(ctx, args.what) if args.action == "show" else rescue.drop(ctx, args.what)

"""`harness accept`: take work that waits for a person, and complete its task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import accept

SUMMARY = "take work that waits for a person, and complete its task"
EXAMPLE = "harness accept task-001 --path .env"
HELP_ORDER = 242


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("id", help="the task")
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="P",
        help="a file that may be committed, or a directory of such files, from the top; may be repeated",
    )


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness accept`."""
    return accept.run(ctx, args.id, tuple(path.rstrip("/") for path in args.path))

"""`harness add`: append a task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import names
from harness_lib.ops import add
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.task import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT_SECONDS, PRIORITIES


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("title", help="what is to be done")
    parser.add_argument("--description", help="more for the agent to know")
    parser.add_argument("--priority", choices=PRIORITIES, default="P1")
    parser.add_argument(
        "--depends-on",
        metavar="ID",
        type=names,
        action="extend",
        default=[],
        help="finish this first; may be repeated or ID,ID",
    )
    parser.add_argument(
        "--validate", metavar="CMD", help="the check: it exits 0 exactly when the task is done"
    )
    parser.add_argument("--cwd", metavar="DIR", help="where the check runs, from the top of the work tree")
    parser.add_argument(
        "--timeout",
        metavar="SEC",
        type=int,
        default=DEFAULT_TIMEOUT_SECONDS,
        help="for the check (default: %(default)s)",
    )
    parser.add_argument("--cleanup", metavar="CMD", help="run after a failed attempt was rolled back")
    parser.add_argument(
        "--max-attempts", metavar="N", type=int, default=DEFAULT_MAX_ATTEMPTS, help="(default: %(default)s)"
    )
    parser.add_argument(
        "--protect",
        metavar="GLOB",
        action="append",
        default=[],
        help="files that an attempt may not change, nor what the check names and how its runner is set up; "
        "may be repeated; auto: these alone; !GLOB: not this one",
    )
    parser.add_argument("--red-first", action="store_true", help="the check must fail before work starts")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness add`."""
    return add.run(
        ctx,
        add.Wish(
            title=args.title,
            description=args.description,
            priority=args.priority,
            depends_on=tuple(args.depends_on),
            validate=args.validate,
            cwd=args.cwd,
            timeout_seconds=args.timeout,
            cleanup=args.cleanup,
            max_attempts=args.max_attempts,
            protect=tuple(args.protect),
            red_first=args.red_first,
        ),
    )

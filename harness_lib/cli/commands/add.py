"""`harness add`: append a task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import names
from harness_lib.core import ownership, proposals
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.task import DEFAULT_MAX_ATTEMPTS, DEFAULT_TIMEOUT_SECONDS, PRIORITIES
from harness_lib.verbs import add


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("title", nargs="?", help="what is to be done")
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
    proposed = parser.add_argument_group("what unattended agents have proposed")
    proposed.add_argument(
        "--proposed", metavar="N", type=int, nargs="*", help="add these; without a number: show them"
    )
    proposed.add_argument("--dismiss", action="store_true", help="forget them instead")


def answer(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    """Answer `harness add`."""
    if args.proposed is not None:
        return _proposed(ctx, args)
    if args.title is None or args.dismiss:
        raise UsageError("A task needs a title.", "See: harness add --help")
    wish = add.Wish(
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
    )
    return proposals.propose(ctx, wish) if ctx.env.get(ownership.SUPERVISED) else add.run(ctx, wish)


def _proposed(ctx: Context, args: Namespace) -> Reply:
    if args.title is not None:
        raise UsageError("A title is for a new task.", "See: harness add --help")
    if not args.proposed:
        return proposals.show(ctx)
    decide = proposals.dismiss if args.dismiss else proposals.accept
    return decide(ctx, args.proposed)

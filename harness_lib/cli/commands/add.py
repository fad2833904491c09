"""`harness add`: append a task."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli import task_options
from harness_lib.cli.screen import Screen
from harness_lib.core import ownership, proposals
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import UsageError
from harness_lib.records import given
from harness_lib.task import Task
from harness_lib.verbs import add

SUMMARY = "append a task"
EXAMPLE = 'harness add "Add rate limiting" --validate "pytest -q tests/test_rate.py" --depends-on task-001'
HELP_ORDER = 20


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("title", nargs="?", help="what is to be done")
    task_options.add(parser, editing=False)
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
    draft = given.with_values(Task("", args.title), task_options.typed(args))
    return proposals.propose(ctx, draft) if ctx.env.get(ownership.SUPERVISED) else add.run(ctx, draft)


def _proposed(ctx: Context, args: Namespace) -> Reply:
    if args.title is not None:
        raise UsageError("A title is for a new task.", "See: harness add --help")
    if not args.proposed:
        return proposals.show(ctx)
    decide = proposals.dismiss if args.dismiss else proposals.accept
    return decide(ctx, args.proposed)

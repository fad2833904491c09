"""`harness checkpoint`: record progress, which recovery can use."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.attempts import dialogue
from harness_lib.core import ownership, quoting
from harness_lib.core.context import Context, Reply
from harness_lib.errors import EnvSetupError

SUMMARY = "record how far the work has come"
EXAMPLE = 'harness checkpoint task-001 2/4 "routes created, tests pending"'
HELP_ORDER = 140


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", help="(default: the one that you hold)")
    parser.add_argument("step", metavar="M/N", help="step M of N is done")
    parser.add_argument("text", help="what was done")


def answer(ctx: Context, args: Namespace) -> Reply:
    """Record the step with the content of the work tree, and renew the lease."""
    done, total = numbers = dialogue.parse_step(args.step)
    description = quoting.one_line(args.text, dialogue.DESCRIPTION_LENGTH)
    name = args.id
    try:
        held = ownership.require_settled(ctx, name)
        name = held.id
        task = dialogue.record_checkpoint(ctx, held, numbers, description)
    except (EnvSetupError, OSError) as error:
        return dialogue.leave_letter(ctx, error, "checkpoint", name, args.step, description)
    return Reply(
        f"{done}/{total} recorded.",
        session=ctx.session.number,
        task=task,
        next=ownership.finish_command(ctx, task, ctx.session),
    )

"""`harness status`: where the list stands."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.runs import overview
from harness_lib.verbs import status

SUMMARY = "where the list stands"
EXAMPLE = "harness status"
HELP_ORDER = 160


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("--all", action="store_true", help="every task, however many there are")
    parser.add_argument(
        "--watch", action="store_true", help="follow what happens until nothing is left to do"
    )


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness status`."""
    if args.watch:
        screen.refuse_json("--watch", "harness status --json")
        from harness_lib.cli import live  # noqa: PLC0415 (on a terminal it needs rich)

        return live.watch(ctx, screen)
    if not screen.is_terminal:
        return status.run(ctx, everything=args.all)
    from harness_lib.cli import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

    view = overview.gather(ctx, None)
    drawing.console(screen.out).print(drawing.view(view, ctx.clock.now().timestamp()))
    return status.answer(ctx, view)._replace(message="")

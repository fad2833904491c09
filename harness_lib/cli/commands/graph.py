"""`harness graph`: which task waits for which."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import get_args

from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.verbs import graph

SUMMARY = "which task waits for which"
EXAMPLE = "harness graph --format mermaid"
HELP_ORDER = 180


def arguments(parser: ArgumentParser) -> None:
    """Add what may be typed after the verb."""
    parser.add_argument("--format", choices=get_args(graph.Format), default="tree")
    parser.add_argument("--all", action="store_true", help="every task, however many there are")


def answer(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    """Answer `harness graph`."""
    if args.format != "tree" or not screen.is_terminal:
        return graph.run(ctx, form=args.format, everything=args.all)
    from harness_lib.cli import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

    questions = ctx.store.ask()
    drawn = graph.draw(questions, None if args.all else graph.SHOWN)
    drawing.console(screen.out).print(drawing.tree(drawn))
    return graph.answer(ctx, questions, drawn)._replace(message="")

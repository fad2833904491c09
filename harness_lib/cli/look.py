"""The verbs that only look."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import replace
from typing import get_args

from harness_lib.cli.screen import Screen
from harness_lib.cli.verb import Verb
from harness_lib.errors import UsageError
from harness_lib.ops import check, doctor, graph, log, repairing, status, why
from harness_lib.ops.context import Context
from harness_lib.ops.reply import Reply
from harness_lib.task import LogType

LOG_TYPES: dict[str, str] = {name.lower(): name for name in get_args(LogType)}


def _status_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every task, however many there are")
    parser.add_argument(
        "--watch", action="store_true", help="follow what happens until nothing is left to do"
    )


def _status(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    if args.watch:
        _refuse_json(screen, "--watch", "harness status --json")
        from harness_lib.cli import live  # noqa: PLC0415 (on a terminal it needs rich)

        return live.watch(ctx, screen)
    if not screen.is_terminal:
        return status.run(ctx, everything=args.all)
    from harness_lib.cli import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

    view = status.look(ctx, None)
    drawing.console(screen.out).print(drawing.view(view, ctx.clock.now().timestamp()))
    return replace(status.answer(ctx, view), message="")


def _refuse_json(screen: Screen, option: str, instead: str) -> None:
    if screen.json:
        raise UsageError(f"{option} goes on and on, and --json is one object.", f"Ask again: {instead}")


def _log_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-n", metavar="N", dest="lines", type=_count, default=log.DEFAULT_LINES, help="(default: %(default)s)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added")
    parser.add_argument("--type", type=_log_type, metavar="TYPE", help=", ".join(LOG_TYPES.values()))
    parser.add_argument("--task", metavar="ID")
    parser.add_argument("--session", metavar="N", type=int)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(log.MOST_LINES))):
        raise ArgumentTypeError(f"{text!r} is no number of lines")
    return min(int(text), log.MOST_LINES)


def _log_type(text: str) -> str:
    try:
        return LOG_TYPES[text.lower()]
    except KeyError:
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(LOG_TYPES.values())}") from None


def _log(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    only = log.Filter(args.type, args.task, args.session)
    if not args.follow:
        return log.run(ctx, lines=args.lines, only=only)
    _refuse_json(screen, "-f", "harness log --json")
    from harness_lib.cli import live  # noqa: PLC0415 (as above)

    return live.follow_log(ctx, screen, args.lines, only)


def _graph_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--format", choices=get_args(graph.Format), default="tree")
    parser.add_argument("--all", action="store_true", help="every task, however many there are")


def _graph(ctx: Context, args: Namespace, screen: Screen) -> Reply:
    if args.format != "tree" or not screen.is_terminal:
        return graph.run(ctx, form=args.format, everything=args.all)
    from harness_lib.cli import drawing  # noqa: PLC0415 (a pipe does not pay for rich)

    snapshot = ctx.store.read()
    drawn = graph.draw(snapshot.state, None if args.all else graph.SHOWN)
    drawing.console(screen.out).print(drawing.tree(drawn))
    return replace(graph.answer(ctx, snapshot, drawn), message="")


def _why_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id")


def _why(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    return why.run(ctx, args.id)


def _check_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="every problem and every command, uncut")
    parser.add_argument(
        "--repair", action="store_true", help="restore a broken list and mend what a crash left behind"
    )
    parser.add_argument(
        "--restore",
        action="store_true",
        help="for a person: put the last good list in the place of one that cannot be used (it is kept)",
    )


def _check(ctx: Context, args: Namespace, _screen: Screen) -> Reply:
    if args.restore:
        return repairing.put_back(ctx)
    return repairing.run(ctx) if args.repair else check.run(ctx, everything=args.all)


def _doctor(ctx: Context, _args: Namespace, _screen: Screen) -> Reply:
    return doctor.run(ctx)


VERBS = (
    Verb("status", "where the list stands", "harness status", _status, _status_arguments),
    Verb("log", "the end of the log", "harness log -n 50 --type ERROR", _log, _log_arguments),
    Verb("graph", "which task waits for which", "harness graph --format mermaid", _graph, _graph_arguments),
    Verb("why", "why a task can or cannot be claimed", "harness why task-003", _why, _why_arguments),
    Verb(
        "check",
        "what is wrong with the list, and what it would run",
        "harness check",
        _check,
        _check_arguments,
    ),
    Verb("doctor", "the usual troubles, each with its cure", "harness doctor", _doctor),
)

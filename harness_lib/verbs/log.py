"""`harness log`: show the end of the log, of all tasks or of one. Use grep for the rest.

Source: docs/protocol.md, "Standardized Log Format".
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator

from harness_lib import typed
from harness_lib.core import quoting
from harness_lib.core.context import Context, Reply
from harness_lib.state import journal
from harness_lib.terminal.render import Screen

SUMMARY = "show the end of the log"
EXAMPLE = "harness log -n 50"
HELP_ORDER = 210

DEFAULT_LINES = 20
MOST_LINES = 10_000


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-n", metavar="N", dest="lines", type=_count, default=DEFAULT_LINES, help="(default: %(default)s)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added")
    parser.add_argument("--task", metavar="ID", help="only the lines about this task")


def answer(ctx: Context, args: Namespace) -> Reply:
    screen: Screen = args.screen
    if not args.follow:
        return run(ctx, args.lines, args.task)
    screen.refuse_json("-f", "harness log --json")
    try:
        # First remember the position, then print the end: a line added between the two appears twice rather
        # than never.
        added = follow(ctx, args.task)
        screen.data(run(ctx, args.lines, args.task).message)
        for line in added:
            screen.data(line)
    except KeyboardInterrupt:
        # Ended by the user or a signal: that is not an error here.
        pass
    return Reply("", next="harness status")


def run(ctx: Context, lines: int = DEFAULT_LINES, task: str | None = None) -> Reply:
    """Return the last `lines` lines (about `task`), from the last megabyte of the log."""
    read = ctx.store.log_tail(lines) if task is None else ctx.store.log_tail()
    fitting = [entry for entry in map(_entry, read) if _fits(entry, task)]
    shown = fitting[-lines:] if lines > 0 else []
    return Reply(
        "\n".join(entry.text for entry in shown) or "No line of the log fits.",
        next="harness status",
        warnings=_not_searched(ctx) if len(shown) < lines else (),
        extra={"lines": [entry._asdict() for entry in shown]},
    )


def follow(ctx: Context, task: str | None = None) -> Iterator[str]:
    """Yield new lines (about `task`), for ever."""
    added = ctx.store.log_follow()
    return (entry.text for line in added if _fits(entry := _entry(line), task))


def _fits(entry: journal.Entry, task: str | None) -> bool:
    return task is None or entry.task in (task, typed.full_id(task))


def _entry(line: str) -> journal.Entry:
    return journal.parse(quoting.one_line(line, 1000))


def _not_searched(ctx: Context) -> tuple[str, ...]:
    """Say that the log is longer than the part that was searched."""
    searched = ctx.store.log_searched()
    if searched is None:
        return ()
    name = ctx.store.log_file.name
    return (f"only the last {searched // 1024} KB of {name} were looked through; grep finds the rest",)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_LINES))):
        raise ArgumentTypeError(f"{text!r} is not a number of lines")
    return min(int(text), MOST_LINES)

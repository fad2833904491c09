"""Show the list or its log as they change, until a person has seen enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_lib import timestamps
from harness_lib.cli.screen import Screen
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.runs import overview
from harness_lib.runs.watch import difference, follow
from harness_lib.verbs import log

if TYPE_CHECKING:
    from rich.console import Group


def watch(ctx: Context, screen: Screen) -> Reply:
    """Follow the list: live on a terminal, a line per change in a pipe; Ctrl-C or a signal ends it well."""
    try:
        last = _watch_live(ctx, screen) if screen.is_terminal else _watch_lines(ctx, screen)
    except KeyboardInterrupt:
        return Reply("status", "", next="harness status")
    return Reply("status", "" if last is None else "Nothing is left to do.", next="harness status")


def _watch_live(ctx: Context, screen: Screen) -> overview.View | None:
    from rich.live import Live  # noqa: PLC0415 (a pipe does not pay for rich)

    from harness_lib.cli import drawing  # noqa: PLC0415

    views = follow(ctx, drawing.height(screen.out))
    last = next(views)

    def draw() -> Group:
        return drawing.watched(last, ctx.clock.now().timestamp())

    # A thread draws: times go on while nothing else happens.
    console = drawing.console(screen.out, wrap=False)
    with Live(console=console, get_renderable=draw, refresh_per_second=1, vertical_overflow="crop") as live:
        for view in views:
            last = view
            live.refresh()
    return last


def _watch_lines(ctx: Context, screen: Screen) -> overview.View | None:
    last = None
    for view in follow(ctx, overview.SHOWN):
        if last is None:
            for warning in view.warnings:
                screen.talk(f"warning: {warning}")
        text = overview.headline(view.counts) if last is None else difference(last, view)
        if text is not None:
            screen.data(f"{timestamps.render(ctx.clock.now())} {text}")
        last = view
    return last


def follow_log(ctx: Context, screen: Screen, lines: int, only: log.Filter) -> Reply:
    """Print the end of the log and what is added, until Ctrl-C or a signal to end."""
    try:
        # First the place, then the end: a line added between the two is shown twice rather than never.
        added = log.follow(ctx, only)
        screen.data(log.run(ctx, lines=lines, only=only).message)
        for line in added:
            screen.data(line)
    except KeyboardInterrupt:
        # By a person or by a signal to end: who only looks has left nothing to go on with.
        pass
    return Reply("log", "", next="harness status")

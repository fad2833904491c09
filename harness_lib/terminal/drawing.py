"""Draw for the user on a terminal; the only user of rich, imported when there is a terminal.

rich itself respects NO_COLOR and TERM=dumb. Texts from a list are never read as its markup: all of them are
`Text` objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from harness_lib.core.context import Context
from harness_lib.errors import HarnessError
from harness_lib.rules.events import Event
from harness_lib.rules.run_state import RunState
from harness_lib.rules.stats import Ahead, Counts
from harness_lib.runs import overview, scheduler

if TYPE_CHECKING:
    from rich.console import JustifyMethod

STYLES = {"completed": "green", "in_progress": "bold cyan", "failed": "red"}
# How the lines of `harness doctor` and of warnings begin.
LEVELS = {"ok": "green", "warn": "yellow", "bad": "red", "warning": "yellow"}
BAR_WIDTH = 30
# Lines of a watched list beside the tasks, so that everything fits on the screen.
FRAME = 20
HEAD = ("", "task", "step", "time", "cost", "tokens", "last words")
NUMBERS = ("time", "cost", "tokens")
# How much of what is left each of these gets.
WIDE = {"task": 3, "last words": 4}
LEAST = {"task": 9, "time": 5}
STEP_STYLES = {
    "works": "cyan",
    "checks": "yellow",
    "merges": "green",
    "limit": "magenta",
    "pauses": "magenta",
}


def console(stream: TextIO, *, wrap: bool = True) -> Console:
    """Return the terminal behind `stream`; nothing in a text is coloured that we did not colour.

    `wrap`: the terminal itself breaks lines, so that what is copied from it is whole.
    """
    return Console(file=stream, highlight=False, soft_wrap=wrap)


def coloured(text: str, style: str = "") -> Text:
    """Return `text` with the words that say how something stands coloured, on a ground of `style`."""
    drawn = Text(text, style=style)
    for name, colour in STYLES.items():
        drawn.highlight_regex(rf"\[{name}\]", style=colour)
    for level, colour in LEVELS.items():
        drawn.highlight_regex(rf"(?m)^{level}\b", style=colour)
    return drawn


def write(stream: TextIO, text: str, style: str = "") -> None:
    """Print a line as `coloured`."""
    console(stream).print(coloured(text, style))


def height(stream: TextIO) -> int:
    """Return how many tasks of a watched list fit on the screen."""
    return max(3, console(stream).height - FRAME)


def view(status: overview.View, now: float) -> Group:
    """Return the list as `harness status` shows it on a terminal at `now` (seconds since the epoch)."""
    drawn = ((each, coloured(each.text, each.style)) for each in overview.lines(status, now))
    return Group(*(text if each.whole else _without_wrap(text) for each, text in drawn))


def watched(status: overview.View, now: float) -> Group:
    """Return the list as it stands on a screen of its own: what is wrong with its file comes first."""
    return Group(*(line(f"warning: {text}", "yellow") for text in status.warnings), view(status, now))


@contextmanager
def watching_run(
    ctx: Context, stream: TextIO, words: Callable[[Event], Iterable[str]]
) -> Iterator[scheduler.Watch]:
    """Yield what is to be called with each event of a run: a live table, above which its `words` go."""
    shown = _Shown(ctx)

    def draw() -> RenderableType:
        return run(shown.state, shown.counts, shown.ahead, ctx.clock.time())

    def take(event: Event, state: RunState) -> None:
        shown.take(state)
        clock = datetime.fromtimestamp(event.at, timezone.utc).astimezone().strftime("%H:%M:%S")
        for text in words(event):
            display.console.print(coloured(f"{clock} {text}"))

    with live(stream, draw, per_second=2, transient=True) as display:
        yield take


class _Shown:
    """What the table shows; drawn by a thread of its own, as checks of the final pass take their time."""

    def __init__(self, ctx: Context) -> None:
        self.state = RunState(began=ctx.clock.time())
        self.counts: Counts | None = None
        self.ahead = Ahead()
        self._ctx = ctx
        self._seen: object = None

    def take(self, state: RunState) -> None:
        """Show the state of the run, and count the tasks again if the list has changed."""
        self.state = state
        seen = self._ctx.store.stamp()
        if seen == self._seen:
            return
        try:
            questions = self._ctx.ask()
        except HarnessError:
            # The user is editing the list; the scheduler says what is to be said about that.
            return
        self.counts, self.ahead, self._seen = questions.counts(), questions.ahead(), seen


def run(state: RunState, counts: Counts | None, ahead: Ahead, now: float) -> RenderableType:
    """Return a run as whoever started it sees it at `now`: its workers, the whole list, what was spent."""
    drawn: list[RenderableType] = [workers(state, now)]
    if counts:
        progress = Table.grid(padding=(0, 1))
        green = counts.completed - counts.red
        bar = ProgressBar(total=max(1, counts.total), completed=green, width=BAR_WIDTH)
        progress.add_row(bar, Text(overview.headline(counts), style="bold"))
        drawn += [progress, line(overview.summary(state, ahead, now), "dim")]
    return Group(*drawn)


def line(text: str, style: str = "") -> Text:
    """Return `text` in `style`, cut where the terminal ends."""
    return _without_wrap(Text(text, style=style))


def _without_wrap(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def workers(state: RunState, now: float) -> Table:
    """Return the table of the workers at the moment `now` (seconds since the epoch)."""
    table = Table(box=None, padding=(0, 1), expand=True, header_style="dim")
    for name in HEAD:
        justify: JustifyMethod = "right" if name in NUMBERS else "left"
        wide, least = WIDE.get(name), LEAST.get(name)
        table.add_column(
            name, justify=justify, no_wrap=True, overflow="ellipsis", ratio=wide, min_width=least
        )
    for row in sorted(state.rows.values(), key=lambda row: row.worker):
        cells = overview.cells(row, now)
        styles = ("bold", "", STEP_STYLES.get(row.step, "dim"), "", "", "", "dim")
        table.add_row(*(Text(cell, style=style) for cell, style in zip(cells, styles, strict=True)))
    return table


def live(stream: TextIO, draw: Callable[[], RenderableType], *, per_second: int, transient: bool) -> Live:
    """Return a display on `stream` that a thread draws anew: times go on while nothing else happens."""
    return Live(
        console=console(stream, wrap=False),
        get_renderable=draw,
        refresh_per_second=per_second,
        transient=transient,
        vertical_overflow="ellipsis" if transient else "crop",
    )

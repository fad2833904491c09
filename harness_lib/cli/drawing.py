"""Draw for a person on a terminal; the only user of rich, imported when there is a terminal.

rich itself respects NO_COLOR and TERM=dumb. Texts from a list are never read as its markup: all of them are
`Text` objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from harness_lib.cli import table
from harness_lib.core import rechecked
from harness_lib.rules.ahead import Ahead
from harness_lib.rules.run_state import RunState
from harness_lib.rules.stats import Counts
from harness_lib.runs import overview, progress
from harness_lib.runs.overview import View
from harness_lib.task import Task
from harness_lib.verbs import graph

STYLES = {"completed": "green", "in_progress": "bold cyan", "failed": "red", "pending": ""}
# How the lines of `harness doctor` and of warnings begin.
LEVELS = {"ok": "green", "warn": "yellow", "bad": "red", "warning": "yellow"}
BAR_WIDTH = 30
# Lines of a watched list beside the tasks, so that everything fits on the screen.
FRAME = 20


def console(stream: TextIO, *, wrap: bool = True) -> Console:
    """Return the terminal behind `stream`; nothing in a text is coloured that we did not colour.

    `wrap`: the terminal itself breaks lines, so that what is copied from it is whole.
    """
    return Console(file=stream, highlight=False, soft_wrap=wrap)


def coloured(text: str, style: str = "") -> Text:
    """Return `text` with the words that say how something stands coloured, on a ground of `style`."""
    drawn = Text(text, style=style)
    for name, colour in STYLES.items():
        if colour:
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


def view(status: View, now: float) -> RenderableType:
    """Return the list as `harness status` shows it on a terminal at `now` (seconds since the epoch)."""
    return Group(*_view(status, now))


def watched(status: View, now: float) -> Group:
    """Return the list as it stands on a screen of its own: what is wrong with its file comes first."""
    return Group(*(_line(f"warning: {text}", "yellow") for text in status.warnings), view(status, now))


def _view(status: View, now: float) -> Iterator[RenderableType]:
    yield _progress(status.counts)
    for line in status.rechecks:
        yield Text(line, style="bold red" if line.startswith(rechecked.RED) else "yellow")
    yield Text(status.hooks, style="dim")
    for seen in status.runs:
        summary = progress.summary(seen.state, status.ahead, now)
        yield _line(f"run: process {seen.pid}; {summary}", "bold")
        yield table.workers(seen.state, now)
    for task in status.shown:
        yield _task(task)
        if task.id in status.beside:
            yield _line(f"    {status.beside[task.id]}", "red" if task.status == "failed" else "cyan")
    if len(status.shown) < status.counts.total:
        yield _line(f"… and {status.counts.total - len(status.shown)} more", "dim")
    if status.halts:
        yield Text("a person must act:", style="bold yellow")
        # Whole, however long: the command that helps stands at their end.
        yield from (Text(f"  {line}", style="yellow") for line in status.halts)
    yield from (Text(line, style="yellow") for line in status.look_at)
    if status.log:
        yield Text("log:", style="bold")
        yield from (_line(f"  {line}", "dim") for line in status.log)
    yield Text(status.sessions)
    # Whole as well: who may end another's session, and how, stands at the end.
    yield from (Text(line) for line in status.people)


def run(state: RunState, counts: Counts | None, ahead: Ahead, now: float) -> RenderableType:
    """Return a run as whoever started it sees it at `now`: its workers, the whole list, what was spent."""
    drawn: list[RenderableType] = [table.workers(state, now)]
    if counts is not None:
        drawn += [_progress(counts), _line(progress.summary(state, ahead, now), "dim")]
    return Group(*drawn)


def _progress(counts: Counts) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    green = counts.completed - counts.red
    bar = ProgressBar(total=max(1, counts.total), completed=green, width=BAR_WIDTH)
    grid.add_row(bar, Text(overview.headline(counts), style="bold"))
    return grid


def _task(task: Task) -> Text:
    return _without_wrap(coloured(overview.one_line(task)))


def _line(text: str, style: str = "") -> Text:
    return _without_wrap(Text(text, style=style))


def _without_wrap(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def tree(drawing: graph.Drawing) -> RenderableType:
    """Return the dependency tree, its cycles and what is left out."""
    root = Tree("", hide_root=True, guide_style="dim")
    path = [root]
    for row in drawing.rows:
        del path[row.depth + 1 :]
        drawn = _line(row.text(), "dim") if row.mark else _without_wrap(coloured(row.text()))
        path.append(path[-1].add(drawn))
    return Group(root, *(_line(line, "yellow") for line in graph.footer(drawing)))

"""What a person sees on a terminal; the only user of rich, imported when there is a terminal.

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

from harness_lib.ops import graph, status
from harness_lib.ops.status import View
from harness_lib.task import Task

STYLES = {"completed": "green", "in_progress": "bold cyan", "failed": "red", "pending": ""}
# How the lines of `harness doctor` and of warnings begin.
LEVELS = {"ok": "green", "warn": "yellow", "bad": "red", "warning": "yellow"}
BAR_WIDTH = 30
# Lines of a watched list beside the tasks, so that everything fits on the screen.
FRAME = 16


def console(stream: TextIO) -> Console:
    """Return the terminal behind `stream`; nothing in a text is coloured that we did not colour."""
    return Console(file=stream, highlight=False, soft_wrap=True)


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


def view(found: View) -> RenderableType:
    """Return the list as `harness status` shows it on a terminal."""
    return Group(*_view(found))


def watched(found: View) -> RenderableType:
    """Return the list as it stands on a screen of its own: what is wrong with its file comes first."""
    return Group(*(_line(f"warning: {text}", "yellow") for text in found.warnings), view(found))


def _view(found: View) -> Iterator[RenderableType]:
    yield _progress(found)
    yield Text(found.hooks, style="dim")
    for task in found.shown:
        yield _task(task)
        if task.id in found.holders:
            yield _line(f"    {found.holders[task.id]}", "cyan")
    if len(found.shown) < len(found.state.tasks):
        yield _line(f"… and {len(found.state.tasks) - len(found.shown)} more", "dim")
    if found.halts:
        yield Text("a person must act:", style="bold yellow")
        yield from (_line(f"  {line}", "yellow") for line in found.halts)
    if found.log:
        yield Text("log:", style="bold")
        yield from (_line(f"  {line}", "dim") for line in found.log)
    yield Text(status.counted_sessions(found.state))
    yield from (_line(line) for line in found.people)


def _progress(found: View) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=max(1, found.counts.total), completed=found.counts.completed, width=BAR_WIDTH)
    grid.add_row(bar, Text(status.headline(found.counts), style="bold"))
    return grid


def _task(task: Task) -> Text:
    return _short(coloured(status.one_line(task)))


def _line(text: str, style: str = "") -> Text:
    return _short(Text(text, style=style))


def _short(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def tree(drawing: graph.Drawing) -> RenderableType:
    """Return the dependency tree, its cycles and what is left out."""
    root = Tree("", hide_root=True, guide_style="dim")
    path = [root]
    for row in drawing.rows:
        del path[row.depth + 1 :]
        drawn = _line(row.text(), "dim") if row.mark else _short(coloured(row.text()))
        path.append(path[-1].add(drawn))
    return Group(root, *(_line(line, "yellow") for line in graph.footer(drawing)))

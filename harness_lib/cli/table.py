"""Draw the workers of a run that goes on, a row for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from harness_lib.rules.run_state import RunState
from harness_lib.runs import progress

if TYPE_CHECKING:
    from rich.console import JustifyMethod

HEAD = ("", "task", "step", "time", "cost", "tokens", "last words")
NUMBERS = ("time", "cost", "tokens")
# How much of what is left each of these gets.
WIDE = {"task": 3, "last words": 4}
LEAST = {"task": 9, "time": 5}
STYLES = {"works": "cyan", "checks": "yellow", "merges": "green", "limit": "magenta", "pauses": "magenta"}


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
        cells = progress.cells(row, now)
        styles = ("bold", "", STYLES.get(row.step, "dim"), "", "", "", "dim")
        table.add_row(*(Text(cell, style=style) for cell, style in zip(cells, styles, strict=True)))
    return table

"""What a hook costs, against the floor: the same interpreter, started for nothing.

For now only its heart, reading the summary.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from benchmarks.measuring import Row, at_most, in_turns
from benchmarks.projects import CHECKOUT, Project

FLOOR = "python3 -I -S -c pass"
READ = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from harness_lib.state import summary
from harness_lib.system.roots import Root
assert summary.read(Root(Path(sys.argv[2]))) is not None
"""


def summary_is_small(few: Project, huge: Project, rounds: int) -> list[Row]:
    """Compare reading the summary of a short and of a long list with the floor, and with each other."""
    taken = in_turns(
        {
            "floor": partial(_start, "pass"),
            "few": partial(_start, READ, str(CHECKOUT), str(few.path)),
            "huge": partial(_start, READ, str(CHECKOUT), str(huge.path)),
        },
        rounds,
    )
    size = f"{huge.tasks:,} tasks"
    return [
        at_most("reading the summary, 10 tasks", 4, taken["few"] / taken["floor"], f"`{FLOOR}`"),
        at_most(f"reading the summary, {size}", 4, taken["huge"] / taken["floor"], f"`{FLOOR}`"),
        at_most(f"the same, {size}", 1.2, taken["huge"] / taken["few"], "10 tasks"),
    ]


def _start(program: str, *args: str) -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", program, *args], check=True)

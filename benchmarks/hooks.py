"""What a hook costs, against the floor: the same interpreter, started for nothing.

Only the hook itself is measured, as the host's shell before it is the same for every hook.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks.measuring import Row, at_most, in_turns, seconds
from benchmarks.projects import AGENT, CHECKOUT, Project

FLOOR = "`python3 -I -S -c pass`"
PROGRAM = ("-c", "pass")
STOP = (str(CHECKOUT / "hooks" / "harness-stop.py"),)


def nearly_free(few: Project, huge: Project, nowhere: Path, rounds: int) -> Iterator[Row]:
    """Compare a Stop hook in `nowhere`, and one that blocks on a short and on a long list, with the floor."""
    nowhere.mkdir()
    taken = in_turns(
        {
            "floor": partial(_start, PROGRAM, nowhere),
            "nowhere": partial(_start, STOP, nowhere),
            "few": partial(_block, few),
            "huge": partial(_block, huge),
        },
        rounds,
    )
    size = f"{huge.tasks:,} tasks"
    yield at_most("a hook where there is no enable flag", 2.5, taken["nowhere"] / taken["floor"], FLOOR)
    yield at_most("a Stop hook that blocks, 10 tasks", 4, taken["few"] / taken["floor"], FLOOR)
    yield at_most(f"a Stop hook that blocks, {size}", 4, taken["huge"] / taken["floor"], FLOOR)
    yield at_most(f"the same, {size}", 1.2, taken["huge"] / taken["few"], "10 tasks")


def foreign(place: Path, rounds: int) -> Iterator[Row]:
    """Compare a Stop hook that blocks on a list which somebody else wrote, from the second time on."""
    for tasks in (10, 10_000):
        with closing(Project.make(place / str(tasks), tasks)) as project:
            list_file = project.path / "harness-tasks.json"
            list_file.write_text(json.dumps(json.loads(list_file.read_bytes()), indent=1), encoding="utf-8")
            first = seconds(partial(_block, project))
            taken = in_turns(
                {"floor": partial(_start, PROGRAM, place), "hook": partial(_block, project)}, rounds
            )
        what = f"a Stop hook on a list that another program wrote, {tasks:,} tasks"
        yield at_most(what, 4, taken["hook"] / taken["floor"], FLOOR)
        yield Row(f"{what}: the first time", "", f"{first / taken['floor']:.1f} times {FLOOR}")


def _block(project: Project) -> None:
    said = _start(STOP, project.path)
    assert json.loads(said)["decision"] == "block", said
    # After eight of them in a row it would let go.
    for note in (project.path / ".harness" / "stops").iterdir():
        note.unlink()


def _start(program: tuple[str, ...], cwd: Path) -> bytes:
    payload = {"session_id": AGENT, "cwd": str(cwd), "hook_event_name": "Stop", "permission_mode": "default"}
    sent = json.dumps({**payload, "stop_hook_active": False})
    command = [sys.executable, "-I", "-S", *program]
    return subprocess.run(command, cwd=cwd, input=sent.encode(), stdout=subprocess.PIPE, check=True).stdout

"""Work as the scripted agent of `harness demo`, which `harness run` starts like a real one.

Its mistakes are in `WORK`: a kill in the middle, two tasks that write to the same place, a wrong
answer first, a task it cannot do.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness_lib.core.context import Context
from harness_lib.system.processes import process, signals

ADD = "def add(a, b):\n    return a + b\n"
MULTIPLY = "\n\ndef mul(a, b):\n    return a * b\n"
SUBTRACT = "\n\ndef sub(a, b):\n    return a - b\n"
CODE = Path("calc.py")
PAGE = Path("README.md")
MARKS = ("<<<<<<<", "=======", ">>>>>>>")
# Seconds that the two conflicting agents wait for each other.
PATIENCE_SECONDS = 20.0

KILLED = "task-001"
TOGETHER = ("task-002", "task-003")


def main() -> None:
    """Do the task of the brief on standard input."""
    WORK[os.environ["HARNESS_TASK_ID"]](sys.stdin.read())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _add(_brief: str) -> None:
    CODE.write_text(ADD, encoding="utf-8")
    _say("calc.py is written; now everything is killed")
    # As a crash of the machine would: the run and the worker that this agent works for.
    run = Context(env=os.environ, cwd=Path.cwd()).store.ask().sessions()[0].pid
    assert run is not None
    above = list(process.ancestors())
    worker = next(each.pid for each in above if each.parent == run)
    # Otherwise it could see the end of its run first, and stop this agent.
    signals.send(worker, signals.PAUSE)
    signals.send(run, signals.KILL)
    signals.send(worker, signals.KILL)


def _append(text: str) -> Callable[[str], None]:
    def work(_brief: str) -> None:
        lines = CODE.read_text(encoding="utf-8").splitlines(keepends=True)
        if any(line.startswith(MARKS) for line in lines):
            _say("both sides of the conflict stay")
            CODE.write_text("".join(line for line in lines if not line.startswith(MARKS)), encoding="utf-8")
            return
        # Until the other agent has begun, too: both then work on the same content.
        place = Path(os.environ["HARNESS_DEMO"])
        (place / os.environ["HARNESS_TASK_ID"]).touch()
        end = time.monotonic() + PATIENCE_SECONDS
        while not all((place / name).exists() for name in TOGETHER) and time.monotonic() < end:
            time.sleep(0.02)
        CODE.write_text("".join(lines) + text, encoding="utf-8")

    return work


def _charge(_brief: str) -> None:
    _say("there is no card reader on this machine")


def _document(brief: str) -> None:
    names = "`add`" if "last failure:" not in brief else "`add`, `mul` and `sub`"
    PAGE.write_text(f"{names} of two numbers.\n", encoding="utf-8")


WORK: dict[str, Callable[[str], None]] = {
    KILLED: _add,
    "task-002": _append(MULTIPLY),
    "task-003": _append(SUBTRACT),
    "task-004": _charge,
    "task-005": _charge,
    "task-006": _document,
}

"""The scripted agent of `harness demo`: it types the commands that SKILL.md tells a real one to type.

What it does wrong is written in `WORK`: a wrong answer first, a kill in the middle, a task it gives up.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness_lib.system import program

# The variables by which a host tells who runs a command: the demo's agents are not the caller.
IDENTITY = (
    "HARNESS_WORKER_ID",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SESSION_ID",
    "GEMINI_SESSION_ID",
    "CLAUDE_PID",
)

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "\n\ndef mul(a, b):\n    return a + b\n"
RIGHT = "\n\ndef mul(a, b):\n    return a * b\n"
BILL = """\
from functools import reduce

from calc import add


def bill(prices):
    return f'total: {reduce(add, prices)}'
"""


def main() -> None:
    """Work until the list says stop."""
    reply = _harness("start")
    while reply["stop"] is None:
        reply = _harness("claim")
        task = reply["task"]
        if not isinstance(task, dict) or reply["stop"] is not None:
            return
        WORK[task["id"]](task["attempts"])
        if task["id"] != GIVEN_UP:
            reply = _harness("finish", task["id"])


def _harness(*words: str) -> dict[str, object]:
    """Type one command, show what a watcher would see, and return the reply object."""
    _say(f"$ harness {shlex.join(words)}")
    done = subprocess.run(
        [*program.harness(), *words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    reply: dict[str, object] = json.loads(done.stdout)
    for line in str(reply["message"]).splitlines()[:4]:
        _say(f"    {line}")
    return reply


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _add(_failed: int) -> None:
    Path("calc.py").write_text(ADD, encoding="utf-8")


def _multiply(failed: int) -> None:
    with Path("calc.py").open("a", encoding="utf-8") as file:
        file.write(RIGHT if failed else WRONG)


def _bill(_failed: int) -> None:
    Path("bill.py").write_text(BILL, encoding="utf-8")
    _harness("checkpoint", "task-003", "1/2", "bill() written, not checked yet")
    os.kill(os.getpid(), signal.SIGKILL)


def _charge(_failed: int) -> None:
    _harness("fail", GIVEN_UP, "--category", "TASK_EXEC", "--message", "no card reader on this machine")


def _document(_failed: int) -> None:
    Path("README.md").write_text("`add` and `mul` of two numbers, and a `bill`.\n", encoding="utf-8")


def _nothing(_failed: int) -> None:
    """Be sure to fail."""


GIVEN_UP = "task-004"
WORK: dict[str, Callable[[int], None]] = {
    "task-001": _add,
    "task-002": _multiply,
    "task-003": _bill,
    "task-004": _charge,
    "task-005": _nothing,
    "task-006": _document,
}

"""Commands that run with a log: how tests begin one, and how they learn that it is up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from harness_lib.system.clock import Clock
from harness_lib.system.processes import runner
from harness_lib.system.processes.runner import Finished

LONG = 60.0


class LateOnceUp(Clock):
    """The deadline has passed as soon as the command has written `file`."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def monotonic(self) -> float:
        return super().monotonic() + (2 * LONG if is_written(self.file) else 0)


def is_written(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def run(command: str, log: Path, **options: Any) -> Finished:
    chosen = {"timeout": LONG, "env": dict(os.environ), **options}
    return runner.run(command, cwd=log.parents[2], log=log, **chosen)


def pid_in(file: Path) -> int:
    return int(file.read_text(encoding="ascii"))

"""Wait for what other processes do, however slow the machine is, and say what never came."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

# In seconds: pytest ends a test after 300.
PATIENCE = 240.0


def until(event: str, seen: Callable[[], object], told: Callable[[], object] = str) -> None:
    """Return once `seen()` is true; fail with `event`, and with what `told()` returns, after a long while."""
    end = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < end, f"{event}: {told()}"
        time.sleep(0.02)


def number_in(file: Path) -> int:
    """Return the number that a process writes into `file`, once its line is there."""
    until(f"a number in {file}", lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())

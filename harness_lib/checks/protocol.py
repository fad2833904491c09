"""What the check of a task is asked, and what it is run in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from harness_lib.checks.checked import Checked
from harness_lib.system.clock import Clock


class Worktree(NamedTuple):
    """Where a check runs: the top of the work tree, its environment, and the file for its output.

    `marks` are variables that every process of a check is given, whatever it is not given of `env`.
    `on_tick` is asked every `tick` seconds and ends the check where it says False.
    """

    top: Path
    env: Mapping[str, str]
    log: Path
    clock: Clock
    marks: Mapping[str, str]
    on_tick: Callable[[], bool] | None = None
    tick: float = 60.0


class Check(Protocol):
    """What decides whether a task is done."""

    @property
    def text(self) -> str | None:
        """What a person reads of it; None where there is none."""

    @property
    def cwd(self) -> str | None:
        """Where it runs, relative to the top of the work tree; None for the top."""

    @property
    def is_given(self) -> bool:
        """Whether there is one: a task without cannot be completed."""

    def fingerprint(self) -> str:
        """Return `sha256:…` of what it asks and where: an attempt that changes it is found out."""

    def commands(self) -> tuple[tuple[str | None, str | None], ...]:
        """Return what a shell would be given, and where: all that a person has to trust of it."""

    def require_place(self, top: Path) -> None:
        """Raise ConfigError if it cannot be run in the work tree at `top` as it is written."""

    def run(self, worktree: Worktree) -> Checked:
        """Run it once. Raises ConfigError if it cannot be run as it is written."""

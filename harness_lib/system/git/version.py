"""Which git this machine has, and what it is new enough for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness_lib.errors import EnvSetupError
from harness_lib.system.git.calls import call

OLDEST = (2, 25)
# `git merge-tree --write-tree`, with which the work of several is merged.
OLDEST_FOR_RUNS = (2, 38)
FOR_RUNS = "`harness run` and `harness demo` need git {}.{}".format(*OLDEST_FOR_RUNS)
CURE_FOR_RUNS = "Install a newer git; every other verb works with this one."


def reported(directory: Path) -> str:
    """Return what git calls itself in `directory`. Raises EnvSetupError where there is none."""
    return os.fsdecode(call(("--version",), directory).stdout).strip()


def is_older(named: str, least: tuple[int, int]) -> bool:
    """Return whether the git that calls itself `named` came before the version `least`."""
    match = re.search(r"(\d+)\.(\d+)", named)
    return match is None or (int(match[1]), int(match[2])) < least


def require_for_runs(directory: Path) -> None:
    """Raise EnvSetupError if git is missing or cannot do what an unattended run needs."""
    named = reported(directory)
    if is_older(named, OLDEST_FOR_RUNS):
        raise EnvSetupError(f"{named} is too old: {FOR_RUNS}.", CURE_FOR_RUNS)

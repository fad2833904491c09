"""The PATH of somebody who has just cloned harness."""

from __future__ import annotations

import os
from pathlib import Path


def without_harness() -> str:
    """Return our PATH less every directory that has a `harness`."""
    entries = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if not Path(entry, "harness").exists())

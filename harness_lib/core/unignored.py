"""Offer the lines that a project's `.gitignore` lacks for caches and for `.env`."""

from __future__ import annotations

from harness_lib.system.git import ignoring
from harness_lib.system.git.repository import Git

CURE = "Add them to .gitignore, or type: harness init --gitignore"


def offer(git: Git) -> str | None:
    """Return which lines are missing, in a sentence; None if none is."""
    lines = ignoring.offered(git)
    return f"git does not ignore {', '.join(lines)} here." if lines else None

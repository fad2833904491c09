"""Processes that outlive whoever starts them, and that nobody waits for."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence


def start(command: Sequence[str], *, env: Mapping[str, str], cwd: str) -> None:
    """Start `command` in a session of its own, without a terminal and without our files. Raises OSError."""
    subprocess.Popen(
        command,
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=True,
        start_new_session=True,
    )

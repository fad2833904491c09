"""Processes that outlive whoever starts them, or the terminal they were started in."""

from __future__ import annotations

import os
import stat
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


def leave_terminal() -> None:
    """Let go nowhere what is printed to a terminal, which was closed: writing there would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        # A terminal that was closed no longer says that it is one.
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)

"""Run a shell command that nobody waits for, and end it after a while.

A process of its own sees to that, so that the command may outlive whoever started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from harness_lib.system.files import atomic, nofollow
from harness_lib.system.install import launcher
from harness_lib.system.processes import reaper
from harness_lib.system.processes.child import Child

TIMED_OUT = 124
_GRACE_SECONDS = 5.0


def start(command: str, *, env: Mapping[str, str], cwd: Path, log: Path, seconds: float) -> Child:
    """Start `sh -c command`, its output added to `log`; return its guard, which exits as the command does.

    After `seconds` the command's process group is ended, and the guard exits with TIMED_OUT. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    descriptor = atomic.within(log.parent, lambda: nofollow.descriptor(log, flags))
    with os.fdopen(descriptor, "ab") as stream:
        return subprocess.Popen(
            [
                *launcher.python("from harness_lib.system.processes.timed_child import guard; guard()"),
                command,
                str(seconds),
            ],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def guard() -> None:
    """Run the command of our arguments, and end it when its time is over."""
    command, seconds = sys.argv[1], float(sys.argv[2])
    child = subprocess.Popen(["sh", "-c", command], start_new_session=True)
    try:
        code = child.wait(seconds)
    except subprocess.TimeoutExpired:
        _end(child)
        code = TIMED_OUT
    sys.exit(code if code >= 0 else 128 - code)


def _end(child: Child) -> None:
    reaper.signal_group(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)
    reaper.signal_group(child.pid, signal.SIGKILL)
    child.wait()

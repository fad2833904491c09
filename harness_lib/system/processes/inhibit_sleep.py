"""Keep the machine from falling asleep while something goes on, where the system offers a way.

The program that does it always ends with us, also when we are killed: `caffeinate -w` watches our pid, and
what `systemd-inhibit` runs ends when the pipe that only we hold is closed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from harness_lib.system.processes import reaper

_ENDING_SECONDS = 5.0


@contextmanager
def keeping(env: Mapping[str, str], why: str, *, platform: str = sys.platform) -> Iterator[None]:
    """Keep the machine awake meanwhile; `why` is what the system shows of it.

    Where there is no such program, or it fails (in a container, say), the machine may fall asleep as before.
    """
    child = _start(env, why, platform)
    try:
        yield
    finally:
        if child is not None:
            _end(child)


def _start(env: Mapping[str, str], why: str, platform: str) -> subprocess.Popen[bytes] | None:
    command = _command(env, why, platform)
    if command is None:
        return None
    try:
        # In a session of its own, it hears no Ctrl-C and finds no terminal to ask for a password on.
        return subprocess.Popen(
            command,
            env=dict(env),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


def _command(env: Mapping[str, str], why: str, platform: str) -> list[str] | None:
    name = "caffeinate" if platform == "darwin" else "systemd-inhibit"
    program = shutil.which(name, path=env.get("PATH", os.defpath))
    if program is None:
        return None
    if platform == "darwin":
        return [program, "-i", "-w", str(os.getpid())]
    return [program, "--what=idle:sleep", "--who=harness", f"--why={why}", "--mode=block", "cat"]


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    child.stdin.close()
    reaper.signal_group(child.pid, signal.SIGTERM)
    try:
        child.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        reaper.signal_group(child.pid, signal.SIGKILL)
        child.wait()

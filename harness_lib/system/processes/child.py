"""Programs that we start: asked one question, followed line by line, spoken with over pipes, or left alone.

One that nobody waits for is ended after a while by a process of its own, so that it may outlive us.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from harness_lib.system.files import atomic, nofollow
from harness_lib.system.install import launcher
from harness_lib.system.processes import reaper

Child = subprocess.Popen[bytes]
TIMED_OUT = 124
_GRACE_SECONDS = 5.0


class Answer(NamedTuple):
    """What a program has said, and how it has ended."""

    code: int
    output: bytes
    complaint: bytes


def ask(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, seconds: float) -> Answer:
    """Run `command` to its end. Raises OSError: TimeoutError where it takes longer than `seconds`."""
    done = _run(command, env, cwd, seconds, output=subprocess.PIPE)
    return Answer(done.returncode, done.stdout, done.stderr)


def exit_code(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, seconds: float) -> int:
    """Run `command` to its end, unheard. Raises OSError: TimeoutError behind `seconds`."""
    return _run(command, env, cwd, seconds, output=subprocess.DEVNULL).returncode


def _run(
    command: Sequence[str], env: Mapping[str, str], cwd: Path, seconds: float, output: int
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from error


def follow(command: Sequence[str], hear: Callable[[str], None], *, env: Mapping[str, str], cwd: Path) -> int:
    """Run `command`, let `hear` have each line that it prints, and return its exit code. Raises OSError."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            hear(line)
    return child.returncode


def start_piped(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    complaints: IO[bytes],
    inherited: Sequence[int] = (),
) -> Child:
    """Start `command` with pipes for its input and output, in a session of its own. Raises OSError.

    `complaints` takes its errors; the descriptors `inherited` stay open in it.
    """
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        pass_fds=tuple(inherited),
        start_new_session=True,
    )


def start_timed(command: str, *, env: Mapping[str, str], cwd: Path, log: Path, seconds: float) -> Child:
    """Start `sh -c command`, its output added to `log`; return its guard, which exits as the command does.

    After `seconds` the command's process group is ended, and the guard exits with TIMED_OUT. Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    descriptor = atomic.within(log.parent, lambda: nofollow.descriptor(log, flags))
    with os.fdopen(descriptor, "ab") as stream:
        return subprocess.Popen(
            [
                *launcher.python("from harness_lib.system.processes.child import guard; guard()"),
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

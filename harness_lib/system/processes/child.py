"""Programs that we start and hear: asked one question, followed line by line, or spoken with over pipes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

Child = subprocess.Popen[bytes]


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

"""Start programs: ask one a question, follow its lines, talk to it over pipes, or leave it alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

Child = subprocess.Popen[bytes]
PIPE, NOTHING, OUTPUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT

# Waits for a line on standard error, which is a pipe until then.
_HELD = 'read -r _ <&2 && exec "$@" 2>&1'


class Answer(NamedTuple):
    """What a program has printed, and how it has ended."""

    code: int
    output: bytes
    complaint: bytes


# Calls what starts a child, perhaps in a thread that is confined, and returns the child.
Starter = Callable[[Callable[[], Child]], Child]


class Command(NamedTuple):
    """What to start: arguments, an environment, and how it is started where not in the ordinary way."""

    argv: Sequence[str]
    env: Mapping[str, str]
    starter: Starter | None = None


def ask(command: Sequence[str], *, env: Mapping[str, str], cwd: Path, seconds: float) -> Answer:
    """Run `command` to its end. Raises OSError: TimeoutError if it takes longer than `seconds`."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(str(error)) from error
    return Answer(done.returncode, done.stdout, done.stderr)


def follow(command: Sequence[str], hear: Callable[[str], None], *, env: Mapping[str, str], cwd: Path) -> int:
    """Run `command`, pass each line that it prints to `hear`, and return its exit code. Raises OSError."""
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


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path,
    stdin: IO[bytes] | int = NOTHING,
    output: IO[bytes] | int = NOTHING,
    errors: IO[bytes] | int | None = OUTPUT,
    inherited: Sequence[int] = (),
) -> Child:
    """Start `command` as the leader of a session, and so of a process group, of its own. Raises OSError.

    Its streams are files, NOTHING or a PIPE; `errors` may also be its OUTPUT, or None for our own. The
    descriptors `inherited` stay open in it.
    """
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=dict(env),
        stdin=stdin,
        stdout=output,
        stderr=errors,
        pass_fds=tuple(inherited),
        start_new_session=True,
    )


def start_noted(
    command: Command,
    note: Callable[[Child], None],
    *,
    cwd: str | Path,
    stdin: IO[bytes] | int = NOTHING,
    output: IO[bytes] | int,
) -> Child:
    """Start `command` like `start`, but let it begin only when `note` has returned for it.

    So nothing runs that is not noted, even if this process is killed meanwhile. Its output and errors go to
    `output`. Raises OSError, and what its `starter` raises.
    """
    held, release = os.pipe()
    # Whoever takes it out closes it: after an interrupt of this thread, another one may still need it.
    ends = [held]

    def start_held() -> Child:
        end = ends.pop()
        try:
            # Not the first shell of the PATH: no program of an agent may wait there.
            argv = ("/bin/sh", "-c", _HELD, "sh", *command.argv)
            return start(argv, env=command.env, cwd=cwd, stdin=stdin, output=output, errors=end)
        finally:
            os.close(end)

    try:
        child = command.starter(start_held) if command.starter else start_held()
        note(child)
        os.write(release, b"\n")
    finally:
        # What was not released ends by itself.
        os.close(release)
        while ends:
            os.close(ends.pop())
    return child

"""`python -m tests.runs.forking ARGS`: `harness ARGS` whose workers are forks, and whose time may hurry."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, NoReturn
from unittest import mock

from harness_lib.cli.main import entry
from harness_lib.runs import worker_main
from harness_lib.system.clock import Clock
from harness_lib.system.git import advance
from harness_lib.system.processes import child

# How many times as fast time passes for what waits, if that stands in the environment.
HASTE = "HARNESS_TEST_HASTE"
# How many seconds the clock on the wall is ahead (or behind, below 0), if that stands in the environment.
AHEAD = "HARNESS_TEST_AHEAD"
# What Linux shows as the name of a worker.
WORKER = "harness-worker"


def _hasten(times: float) -> None:
    began = time.monotonic()
    mock.patch.multiple(
        Clock,
        monotonic=lambda _: began + (time.monotonic() - began) * times,
        sleep=lambda _, seconds: time.sleep(seconds / times),
    ).start()
    mock.patch.object(advance, "PATIENCE_SECONDS", advance.PATIENCE_SECONDS / times).start()


def _set_wall(ahead: float) -> None:
    real = time.time

    def wall() -> float:
        return real() + ahead

    def now(_: Clock) -> datetime:
        return datetime.fromtimestamp(wall(), timezone.utc)

    mock.patch.object(Clock, "now", now).start()
    mock.patch.object(time, "time", wall).start()


class _Worker:
    """A worker of a run, of which the run sees what it sees of a `Child`."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


def _start_worker(
    *,
    env: Mapping[str, str],
    cwd: Path,
    errors: IO[bytes],
    inherited: Sequence[int],
) -> _Worker:
    """Start a worker as `child.start` does, of whose command it is known what it does."""
    (stdin, to_it), (from_it, stdout) = os.pipe(), os.pipe()
    sys.stdout.flush()
    if not (pid := os.fork()):
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        _work((stdin, stdout, errors.fileno()), inherited)
    os.close(stdin)
    os.close(stdout)
    return _Worker(pid, os.fdopen(to_it, "wb", 0), os.fdopen(from_it, "rb", 0))


def _work(streams: Sequence[int], inherited: Sequence[int]) -> NoReturn:
    """Be a worker until it ends, and end as the interpreter does."""
    code = 1
    try:
        os.setsid()
        Path("/proc/self/comm").write_text(WORKER, encoding="ascii")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        _silence_others(inherited)
        worker_main.main()
        code = 0
    except BaseException:  # noqa: BLE001 (as the interpreter does)
        traceback.print_exc()
    finally:
        # Nobody reads what a worker of a killed run still has to say, and it must not go on as that run.
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _silence_others(inherited: Sequence[int]) -> None:
    """Let the descriptors of the run lead nowhere, and let go of its locks.

    They are not closed: objects of the run, which are here too, close them once more at their end, and the
    number could be that of a lock or a connection of ours by then.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in (nowhere, *inherited):
            os.dup2(nowhere, number, inheritable=False)


if __name__ == "__main__":
    if HASTE in os.environ:
        _hasten(float(os.environ[HASTE]))
    if AHEAD in os.environ:
        _set_wall(float(os.environ[AHEAD]))
    start = child.start

    def start_any(command: Sequence[str], **options: Any) -> Any:
        """Fork a worker, which alone inherits the lock of its run; start any other program."""
        if "inherited" not in options:
            return start(command, **options)
        return _start_worker(**{name: options[name] for name in ("env", "cwd", "errors", "inherited")})

    mock.patch.object(child, "start", start_any).start()
    entry()

"""Processes of harness, forked from one that has loaded it all: a start takes 10 ms and not half a second.

`python -m tests.fork_server NUMBER` is that one; it takes orders on the descriptor NUMBER until its other end
is closed. What it starts are processes like any others: with arguments, environment, streams, a directory and
an exit code of their own. A run that was started so forks its workers.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, NoReturn
from unittest import mock

from harness_lib.cli import main as command_line
from harness_lib.runs import worker_main
from harness_lib.system.clock import Clock
from harness_lib.system.processes import child
from harness_lib.verbs import run as _run  # noqa: F401 (loaded before anything is started)
from tests.conftest import CHECKOUT

__all__ = ["HASTE", "Forked", "start"]

ORDER_BYTES = 1024 * 1024
NUMBER_BYTES = 4
# How many times as fast time passes for a process in whose environment this stands.
HASTE = "HARNESS_TEST_HASTE"
# What Linux shows as the name of a forked worker.
WORKER = "harness-worker"


class Forked:
    """A process that the fork server has started, as `subprocess.Popen` shows one."""

    def __init__(self, status: int) -> None:
        self._status = status
        self.pid = _read_number(status)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, seconds: float | None) -> bool:
        if self.returncode is None and select.select([self._status], [], [], seconds)[0]:
            self.returncode = _read_number(self._status)
            os.close(self._status)
        return self.returncode is not None


def _read_number(stream: int) -> int:
    return int.from_bytes(os.read(stream, NUMBER_BYTES), "little", signed=True)


def _write_number(stream: int, number: int) -> None:
    os.write(stream, number.to_bytes(NUMBER_BYTES, "little", signed=True))


def start(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], out: IO[str], errors: IO[str]) -> Forked:
    """Start `harness ARGV` with nothing to read; what it prints goes to `out` and `errors`."""
    reading, writing = os.pipe()
    order = json.dumps([list(argv), str(cwd), dict(env)]).encode()
    try:
        socket.send_fds(_server()[0], [order], [out.fileno(), errors.fileno(), writing])
    finally:
        os.close(writing)
    return Forked(reading)


@cache
def _server() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the fork server of this process, with which it ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ORDER_BYTES)
    with theirs:
        command = [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())]
        server = subprocess.Popen(command, cwd=CHECKOUT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    return ours, server


def serve(orders: socket.socket) -> None:
    """Fork a process for each order, and say how each has ended, until nobody can give orders any more."""
    ended, wake = os.pipe()
    for end in (ended, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    # What is loaded is not looked through, and so not copied, in each process.
    gc.freeze()
    watched: dict[int, int] = {}
    while True:
        if orders.fileno() in select.select([orders.fileno(), ended], [], [])[0]:
            order, descriptors, _, _ = socket.recv_fds(orders, ORDER_BYTES, 3)
            if not order:
                return
            out, errors, status = descriptors
            if not (pid := os.fork()):
                streams = (os.open(os.devnull, os.O_RDONLY), out, errors)
                _become(partial(_harness, *json.loads(order)), streams)
            _write_number(status, pid)
            watched[pid] = status
            os.close(out)
            os.close(errors)
        with suppress(BlockingIOError):
            os.read(ended, ORDER_BYTES)
        _collect(watched)


def _collect(watched: dict[int, int]) -> None:
    while watched:
        pid, code = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        status = watched.pop(pid)
        # The test may be over.
        with suppress(BrokenPipeError):
            _write_number(status, os.waitstatus_to_exitcode(code))
        os.close(status)


def _become(work: Callable[[], object], streams: Sequence[int], inherited: Sequence[int] = ()) -> NoReturn:
    """Be a new process with these three standard streams, and end when `work` is done."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        _close_others(inherited)
        work()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter does at the end of a process)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _close_others(inherited: Sequence[int]) -> None:
    for number in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in inherited:
            # That of the directory itself is closed by now.
            with suppress(OSError):
                os.close(number)


def _harness(argv: list[str], cwd: str, env: dict[str, str]) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["harness", *argv]
    if HASTE in env:
        _hasten(float(env[HASTE]))
    mock.patch.object(child, "start_piped", _start_worker).start()
    command_line.entry()


def _hasten(times: float) -> None:
    """Let what waits in this process, and in those that it forks, wait less."""
    began = time.monotonic()
    mock.patch.multiple(
        Clock,
        monotonic=lambda _: began + (time.monotonic() - began) * times,
        sleep=lambda _, seconds: time.sleep(seconds / times),
    ).start()


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
    _command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    complaints: IO[bytes],
    inherited: Sequence[int] = (),
) -> _Worker:
    """Start a worker as `child.start_piped` does, of whose command it is known what it does."""
    (stdin, to_it), (from_it, stdout) = os.pipe(), os.pipe()
    sys.stdout.flush()

    def work() -> None:
        os.setsid()
        Path("/proc/self/comm").write_text(WORKER, encoding="ascii")
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        worker_main.main()

    if not (pid := os.fork()):
        _become(work, (stdin, stdout, complaints.fileno()), inherited)
    os.close(stdin)
    os.close(stdout)
    return _Worker(pid, os.fdopen(to_it, "wb", 0), os.fdopen(from_it, "rb", 0))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))

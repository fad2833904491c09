"""Run `python -m MODULE` in a fork of a process that has imported everything, which saves most of its start.

A fork has arguments, environment, working directory, standard streams and exit code of its own.
Its command line and its parent are not what they would be: a test that looks at those starts an interpreter.
`run` itself does so where an interpreter would read other variables when it starts.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLong
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

CHECKOUT = Path(__file__).resolve().parent.parent
# What an interpreter reads when it starts.
AT_START = ("PYTHON", "LC_", "LANG", "LD_")
# What tests have of these, see `home` in tests/conftest.py.
_USUAL = {
    **{name: value for name, value in os.environ.items() if name.startswith(AT_START)},
    "PYTHONPATH": str(CHECKOUT),
}
_LENGTH = 8


def run(
    module: str, args: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: str = "", timeout: float = 90
) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE ARGS` and return what it printed, both streams as UTF-8, and its exit code."""
    server = _server(_USUAL)
    if server.env == _at_start(env):
        return server.run(module, args, cwd, env, stdin, timeout)
    return subprocess.run(
        [sys.executable, "-m", module, *args],
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
    )


def start(
    module: str, args: Sequence[str], cwd: Path, env: Mapping[str, str], out: IO[str], errors: IO[str]
) -> Process:
    """Start `python -m MODULE ARGS`, which has nothing to read and prints to `out` and `errors`."""
    server = _server(_at_start(env))
    nothing = os.open(os.devnull, os.O_RDONLY)
    our_end, their_end = os.pipe()
    server.fork(module, args, cwd, env, [nothing, out.fileno(), errors.fileno(), their_end])
    os.close(nothing)
    os.close(their_end)
    return Process(our_end)


class Process:
    """A fork that is at work, as `subprocess.Popen` shows one."""

    def __init__(self, end: int) -> None:
        self._end = os.fdopen(end)
        self.pid = int(self._end.readline())
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
        if self.returncode is None and select.select([self._end], [], [], seconds)[0]:
            with self._end:
                self.returncode = os.waitstatus_to_exitcode(int(self._end.readline()))
        return self.returncode is not None


def _server(env: Mapping[str, str]) -> _Server:
    """Return the server that was started with the variables `env`, started by whoever asks first."""
    key = frozenset(env.items())
    with _LOCK:
        if key not in _STARTED:
            _STARTED[key] = _Server(dict(env))
    return _STARTED[key]


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


class _Server:
    """The process that forks; it ends when this one does."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self._talk, theirs = socket.socketpair()
        # Pipes, as every fork has them: how Python makes its streams depends on what they are.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", str(theirs.fileno())],
            cwd=CHECKOUT,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def fork(
        self, module: str, args: Sequence[str], cwd: Path, env: Mapping[str, str], streams: list[int]
    ) -> None:
        """Fork what has three standard `streams`, and into the fourth writes its pid and how it has ended."""
        order = {"module": module, "args": list(args), "cwd": str(cwd), "env": dict(env)}
        text = json.dumps(order).encode()
        with _LOCK:
            socket.send_fds(self._talk, [len(text).to_bytes(_LENGTH, "big")], streams)
            self._talk.sendall(text)

    def run(
        self, module: str, args: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        (their_in, our_in), (our_out, their_out), (our_err, their_err), (our_end, their_end) = (
            os.pipe() for _ in range(4)
        )
        theirs = [their_in, their_out, their_err, their_end]
        self.fork(module, args, cwd, env, theirs)
        for each in theirs:
            os.close(each)
        deadline = time.monotonic() + timeout
        with os.fdopen(our_end) as end, ThreadPoolExecutor() as pool:
            pid = end.readline()
            assert pid, self.process.communicate()
            writing = pool.submit(_write, our_in, stdin)
            reading = [pool.submit(_read, each) for each in (our_out, our_err)]
            try:
                out, err = (each.result(deadline - time.monotonic()) for each in reading)
            except TooLong:
                os.kill(int(pid), signal.SIGKILL)
                raise
            writing.result()
            code = os.waitstatus_to_exitcode(int(end.readline()))
        return subprocess.CompletedProcess([module, *args], code, out, err)


def _write(pipe: int, text: str) -> None:
    # Not every program reads what it is given.
    with suppress(BrokenPipeError), os.fdopen(pipe, "w", encoding="utf-8") as stream:
        stream.write(text)


def _read(pipe: int) -> str:
    with os.fdopen(pipe, encoding="utf-8") as stream:
        return stream.read()


_LOCK = threading.Lock()
_STARTED: dict[frozenset[tuple[str, str]], _Server] = {}


# -- the server ------------------------------------------------------------------------------------------


def _preload() -> None:
    """Import all of our modules, and what they need."""
    for package in ("hs", "loop", "cli", "verbs", "runs"):
        for found in pkgutil.walk_packages(
            importlib.import_module(f"harness_lib.{package}").__path__, f"harness_lib.{package}."
        ):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


def _serve(talk: socket.socket) -> str:
    """Fork for each order; return the module that is to be run, in the fork only."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait for the forks
    while True:
        head, streams, *_ = socket.recv_fds(talk, _LENGTH, 4)
        if not head:
            os._exit(0)
        order = json.loads(_exactly(talk, int.from_bytes(head, "big")))
        if os.fork() == 0:
            talk.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child = os.fork()
            if child == 0:
                return _become(order, streams)
            for stream in streams[:3]:
                os.close(stream)
            os.write(streams[3], f"{child}\n".encode())
            for stream in range(3):
                os.close(stream)
            os.write(streams[3], f"{os.waitpid(child, 0)[1]}\n".encode())
            os._exit(0)
        for stream in streams:
            os.close(stream)


def _exactly(talk: socket.socket, length: int) -> bytes:
    parts = b""
    while len(parts) < length:
        parts += talk.recv(length - len(parts))
    return parts


def _become(order: dict[str, Any], streams: list[int]) -> str:
    """Take over what the order says, as an interpreter would be started with it."""
    for number, stream in enumerate(streams[:3]):
        os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    module, args, cwd, env = order["module"], order["args"], order["cwd"], order["env"]
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    sys.path[0] = str(cwd)
    sys.argv[1:] = args
    return str(module)


def _end(done: SystemExit) -> None:
    """End as the interpreter does, but do not take apart what was imported: most runs are shorter."""
    if done.code is None or isinstance(done.code, int):
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit((done.code or 0) & 0xFF)


if __name__ == "__main__":
    _preload()
    started = _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module(started, run_name="__main__", alter_sys=True)
    except SystemExit as done:
        _end(done)
        raise

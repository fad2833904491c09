"""Our programs in a fork of a process that has imported everything, which saves most of their start.

A fork has arguments, environment, directory, standard streams, signals, terminal and exit code of its own. It
lacks what only the start of a program gives: the locale, and what the kernel shows of its arguments and
environment. A test that looks at these starts an interpreter; `run` and `start` themselves do so where an
interpreter would read other variables when it starts.

`python -m tests.forked ADDRESS MODULE...` is that process. There are several of them (PRELOADED): the
more is imported, the more a fork costs. All workers of a run of tests share them. Each connection brings
three descriptors and a line of JSON: what is run, its arguments, directory and environment, and whether
it has the terminal to itself. The process id is told there, and in the end the exit status. A connection
that is closed ends its program. The process ends with its standard input.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

from tests import fork_relay
from tests.run_to_end import run_to_end
from tests.waiting import PATIENCE

CHECKOUT = Path(__file__).resolve().parent.parent
# What is imported before a program is forked that has one of these words in it; `*`: all the modules there.
PRELOADED = {
    "harness_lib.hs": (
        *("harness_lib.hs.*", "harness_lib.loop.*", "harness_lib.agents.*"),
        *("httpcore2", "encodings.idna"),
    ),
    "mcp_server.py": ("mcp.server.mcpserver",),
    "": (
        *("harness_lib.cli.*", "harness_lib.verbs.*", "harness_lib.runs.*", "harness_lib.state.*"),
        *("ctypes", "rich.console", "runpy", "tomlkit", "unittest.mock"),
    ),
}
# What an interpreter reads when it starts.
AT_START = ("PYTHON", "LC_", "LANG", "LD_")
# What tests have of these, see `home` in tests/conftest.py.
_USUAL = {
    **{name: value for name, value in os.environ.items() if name.startswith(AT_START)},
    "PYTHONPATH": str(CHECKOUT),
}
_TEMPORARY = os.environ.get("TMPDIR") or "/tmp"
HS = "import sys; from harness_lib.hs.main import entry; sys.exit(entry())"


class Forked(subprocess.Popen[str]):
    """A `Popen` of the Python code `program` with arguments, which is forked.

    With `terminal` its standard input is the terminal that it controls.
    """

    def __init__(
        self, args: Sequence[str], *, program: str = HS, terminal: bool = False, **options: Any
    ) -> None:
        self._asked = {"program": program, "terminal": terminal}
        self._preloaded = _preloaded(program)
        super().__init__(args, encoding="utf-8", **options)

    def _execute_child(self, args: Sequence[str], *popen: Any) -> None:
        """Start it; called by `Popen` with what it has made of its own arguments."""
        _, _, _, _, cwd, env, _, _, _, *pipes, _, _, _, _, _, start_new_session = popen[:21]
        asked = {
            **self._asked,
            "args": list(args),
            "cwd": str(cwd or Path.cwd()),
            "env": {**(os.environ if env is None else env), **_mutant()},
            "session": start_new_session,
        }
        streams = [pipe if pipe >= 0 else own for own, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._told = fork_relay.start(_server(*self._preloaded), streams, asked)
        self.pid = int(self._told.readline())
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self._child_created = True

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def _internal_poll(self, _deadstate: int | None = None, **_: Any) -> int | None:
        try:
            return self._wait(0)
        except subprocess.TimeoutExpired:
            return None


def run(
    module: str,
    args: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run `python -m MODULE ARGS` and return what it printed, both streams as UTF-8, and its exit code."""
    if _is_usual(env):
        return run_hs(args, program=_module(module), cwd=cwd, env=env, stdin=stdin)
    return run_to_end([sys.executable, "-m", module, *args], cwd=cwd, env=env, stdin=stdin)


def start(
    module: str, args: Sequence[str], cwd: Path, env: Mapping[str, str], out: IO[str], errors: IO[str]
) -> subprocess.Popen[str]:
    """Start `python -m MODULE ARGS`, which has nothing to read and prints to `out` and `errors`."""
    nothing = subprocess.DEVNULL
    if _is_usual(env):
        return Forked(
            args, program=_module(module), cwd=cwd, env=env, stdin=nothing, stdout=out, stderr=errors
        )
    command = [sys.executable, "-m", module, *args]
    return subprocess.Popen(command, cwd=cwd, env=env, stdin=nothing, stdout=out, stderr=errors, text=True)


def _mutant() -> dict[str, str]:
    """Return what tells a fork which mutant is tried, or where to write which functions it runs."""
    return {name: value for name, value in os.environ.items() if name.startswith("MUTANT")}


def _is_usual(env: Mapping[str, str]) -> bool:
    return {name: value for name, value in env.items() if name.startswith(AT_START)} == _USUAL


def _module(name: str) -> str:
    return f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"


def run_hs(
    args: Sequence[str],
    *,
    program: str = HS,
    stdin: str | int = "",
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Do as `subprocess.run` with captured output does; `stdin` is what it reads, or a descriptor."""
    pipe = subprocess.PIPE
    given = pipe if isinstance(stdin, str) else stdin
    with Forked(
        args, program=program, **{"stdin": given, "stdout": pipe, "stderr": pipe, **options}
    ) as process:
        try:
            out, err = process.communicate(stdin if isinstance(stdin, str) else None, PATIENCE)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(args, process.returncode, out, err)


def command(program: str = HS) -> list[str]:
    """Return a command that is a fork which runs `program`, for whoever starts one of a few words."""
    server = _server(*_preloaded(program))
    return [sys.executable, "-I", "-S", fork_relay.__file__, server, program]


def with_children() -> str:
    """Return the program `hs` whose children that are `hs`, too, are forked."""
    return f"from harness_lib.system.install import launcher; launcher.hs = lambda: {command()!r}; {HS}"


def _preloaded(program: str) -> tuple[str, ...]:
    return next(names for word, names in PRELOADED.items() if word in program)


@cache
def _server(*preloaded: str) -> str:
    """Return where the process listens that forks for this one; it is started now, if no other one has.

    It is the same for all workers of a run of tests, and ends with the last of them.
    """
    if run := os.environ.get("PYTEST_XDIST_TESTRUNUID"):
        number = list(PRELOADED.values()).index(preloaded)
        directory = Path(_TEMPORARY, f"forked-{run[:12]}-{number}")
        directory.mkdir(mode=0o700, exist_ok=True)
    else:
        directory = Path(tempfile.mkdtemp(prefix="forked-", dir=_TEMPORARY))
    address, users = directory / "socket", directory / "users"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            os.mkfifo(users)
            reading = os.open(users, os.O_RDONLY | os.O_NONBLOCK)
        else:
            reading = None
        # It reads from whoever has this open, and nobody writes.
        writing = os.open(users, os.O_WRONLY)
        server = _begin_server(str(address), preloaded, reading) if reading is not None else None

    def end() -> None:
        os.close(writing)
        if server is not None:
            server.wait()
            shutil.rmtree(directory)

    atexit.register(end)
    return str(address)


def _begin_server(address: str, preloaded: Sequence[str], reading: int) -> subprocess.Popen[bytes]:
    """Start the process, and return once it listens."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.forked", address, *preloaded],
        cwd=CHECKOUT,
        env={**os.environ, **_USUAL},
        stdin=reading,
        stdout=subprocess.PIPE,
    )
    os.close(reading)
    assert server.stdout is not None
    with server.stdout:
        assert server.stdout.readline() == b"ready\n"
    return server


# -- the server ------------------------------------------------------------------------------------------


def _preload(names: Sequence[str]) -> None:
    """Import these modules; `PACKAGE.*` is all of a package, but for what is a program."""
    for name in names:
        package = name.removesuffix("*")
        module = importlib.import_module(package.removesuffix("."))
        for found in pkgutil.walk_packages(module.__path__, package) if name != package else ():
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


def _serve(address: str) -> None:
    """Fork for whoever connects, until standard input ends."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    asking: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(128)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            ready = select.select([listening, sys.stdin, woken, *asking.values()], [], [])[0]
            if sys.stdin in ready:
                break
            if woken in ready:
                woken.recv(4096)
            _tell(asking, {pid for pid, connection in asking.items() if connection in ready})
            if listening in ready:
                connection, _ = listening.accept()
                if pid := _fork(connection):
                    asking[pid] = connection
    for pid in asking:
        os.kill(pid, signal.SIGKILL)


def _tell(asking: dict[int, socket.socket], gone: set[int]) -> None:
    """Tell of each fork that has ended; end those whose asker has `gone`."""
    for pid in gone:
        os.kill(pid, signal.SIGKILL)
    for pid in list(asking):
        ended, status = os.waitpid(pid, 0 if pid in gone else os.WNOHANG)
        if ended:
            with asking.pop(pid) as connection, suppress(OSError):
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _fork(connection: socket.socket) -> int | None:
    """Start what is asked for; return its process id, None if whoever asked is gone."""
    data, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not data.endswith(b"\n"):
        if not (more := connection.recv(1 << 20)):
            connection.close()
            return None
        data += more
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _become(json.loads(data), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(OSError):
        connection.sendall(f"{pid}\n".encode())
    return pid


def _become(asked: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the program, as an interpreter would be started with it, and end with its exit code."""
    if asked["session"] or asked["terminal"]:
        os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, 256)
    if asked["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    tempfile.tempdir = None
    time.tzset()
    sys.path[0] = asked["cwd"]
    sys.argv = ["forked", *asked["args"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout = _stream(0, "r", "strict"), _stream(1, "w", "strict")
    sys.stderr = _stream(2, "w", "backslashreplace")
    if "MUTANT_SEEN" in os.environ:
        importlib.import_module("tests.mutation.seen").begin()
    code = 1
    try:
        exec(asked["program"], {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter does)
        traceback.print_exc()
    finally:
        # What was imported is not taken apart: most runs are shorter.
        with suppress(OSError, ValueError):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code & 0xFF)


def _stream(descriptor: int, mode: str, errors: str) -> io.TextIOWrapper:
    raw = open(descriptor, f"{mode}b", -1 if descriptor != 2 else 0, closefd=False)  # noqa: SIM115
    buffered = raw if descriptor != 2 else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffered, "utf-8", errors, line_buffering=descriptor == 2 or os.isatty(descriptor)
    )


if __name__ == "__main__":
    _preload(sys.argv[2:])
    _serve(sys.argv[1])

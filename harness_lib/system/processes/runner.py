"""Run one shell command to its end, within a deadline, and leave nothing of it running.

Its output goes straight into a log file: it may be larger than memory, and it survives a crash of harness.
A command has a process group of its own and so survives a SIGKILL of harness. A note beside its log names the
group, and the process that continues the work ends that group first.
Source: docs/design.md, "At the finish", step 3.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from harness_lib.errors import EnvSetupError
from harness_lib.system import fs
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.place import own_files
from harness_lib.system.processes import child, environment, process, sandbox
from harness_lib.system.processes.child import Child
from harness_lib.text import harmless

MAX_LOG_BYTES = 1024**3
TIMED_OUT = 124
_SUFFIX = ".running"
_WORDS = 3
TAIL_LINES = 20
TAIL_CHARS = 2000
TAIL_BYTES = 64 * 1024
# Compilers print what matters at the beginning, test runners at the end.
END_BYTES = 256 * 1024
# Colours, cursor movements and titles; the rest of a broken one goes with the control characters.
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"
KEPT_BYTES = 4 * 1024 * 1024


class Finished(NamedTuple):
    """How a command ended.

    `returncode`: its own, negative for a signal as in `subprocess`; None if harness ended it: at the deadline
    (`timed_out`), for too much output (`too_loud`), or because `on_tick` returned False (neither).
    """

    returncode: int | None
    timed_out: bool
    too_loud: bool
    seconds: float
    tail: str

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.returncode == 0


def run(
    command: str,
    *,
    cwd: Path,
    log: Path,
    timeout: float,
    env: environment.Env,
    stdin: bytes = b"",
    at_start: Callable[[int], None] | None = None,
    on_tick: Callable[[], bool] | None = None,
    at_end: Callable[[], None] | None = None,
    tick: float = 60.0,
    max_log: int | None = None,
    clock: Clock = SYSTEM,
) -> Finished:
    """Run `sh -c command` in `cwd` with `env` and `stdin`, all output into `log`, which is emptied first.

    In the work tree of a run it starts in the sandbox that `env` names (`sandbox.py`).

    `timeout` and `tick` are in seconds. After `timeout`, or more than `max_log` bytes (default 1 GiB, or
    HARNESS_LOG_LIMIT_BYTES in `env`), its processes get TERM, a little later KILL.
    `at_start` gets a descriptor that reads the log, even after its file is removed; it is valid until
    `at_end` has returned. `on_tick` is called about every `tick` seconds; False ends the command in the same
    way. `at_end` is called once no process of it is left, while all of its output is still there; then a long
    log is cut to both ends, and a removed one is written again. On return, and after an exception, no process
    that it started is left. Daemons that left the process group are found on Linux only. One run at a time in
    a process; what `on_tick` starts in a session of its own counts as the command's. Raises FileNotFoundError
    or NotADirectoryError naming `cwd` if that is not a directory.
    """
    limit = _log_limit(env) if max_log is None else max_log
    began = clock.monotonic()
    with (
        _opened(log) as output,
        _holding(stdin, log.parent) as stdin_file,
        sandbox.entered(command, env, cwd) as ready,
    ):
        with child.adopting() as known:
            process: Child | None = None

            def noted(started: Child) -> None:
                nonlocal process
                # Already here: an interrupt may come before it is returned.
                process = started
                note(log, started.pid)

            try:
                if at_start:
                    at_start(output)
                process = child.start_noted(ready, noted, cwd=cwd, stdin=stdin_file, output=output)
                ending = child.wait(
                    process,
                    output,
                    timeout=timeout,
                    limit=limit,
                    tick=tick,
                    on_tick=on_tick or (lambda: True),
                    clock=clock,
                )
                if ending != "ended":
                    child.end_tree(process.pid, partial(_has_ended, process), clock=clock)
            finally:
                _end(process, known, clock)
                forget(log)
        if at_end:
            at_end()
        _finish(log, output)
    return Finished(
        returncode=process.returncode if ending == "ended" else None,
        timed_out=ending == "timeout",
        too_loud=ending == "loud",
        seconds=clock.monotonic() - began,
        tail=tail_of(log),
    )


@contextmanager
def _opened(log: Path, flags: int = os.O_TRUNC) -> Iterator[int]:
    """Yield a descriptor of `log`, which is emptied first by default."""
    # Appending: a command that empties its own log must not leave a hole of zeros before what follows.
    flags |= os.O_RDWR | os.O_CREAT | os.O_APPEND
    descriptor = fs.within(log.parent, lambda: own_files.descriptor(log, flags))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _holding(content: bytes, directory: Path) -> Iterator[int]:
    """Yield the input of a command with `content`: a file without a name, which nobody can remove."""
    if not content:
        yield child.NOTHING
        return
    with fs.within(directory, lambda: tempfile.TemporaryFile(dir=directory)) as stream:
        stream.write(content)
        stream.seek(0)
        yield stream.fileno()


def _has_ended(process: Child) -> bool:
    """Return whether `process` has ended; collect the dead of its group, so that it can be empty."""
    if process.poll() is None:
        return False
    child.reap(process.pid)
    return True


def _end(process: Child | None, known: frozenset[int], clock: Clock) -> None:
    # None: an interrupt during its start. Then it is among the orphans.
    if process:
        child.signal_group(process.pid, signal.SIGKILL)
        child.collect(process)
    child.end_orphans(known, clock)


def _log_limit(env: environment.Env) -> int:
    text = env.get("HARNESS_LOG_LIMIT_BYTES") or str(MAX_LOG_BYTES)
    if text.isascii() and text.isdigit():
        return int(text)
    message = f"Invalid number of bytes in HARNESS_LOG_LIMIT_BYTES: {text}"
    raise EnvSetupError(message, "Set it to a whole number, or unset it.")


def tail_of(log: Path) -> str:
    """Return the end of `log` (TAIL_LINES, TAIL_CHARS) as plain text; "" if it is missing."""
    lines = plain(_read(log, 0, TAIL_BYTES).rstrip())
    return "\n".join(lines[-TAIL_LINES:])[-TAIL_CHARS:].strip("\n")


def ends_of(log: Path) -> list[str]:
    """Return the lines of `log`, or of both its ends if it is larger; [] if it is missing."""
    return plain(_read(log, END_BYTES, END_BYTES).rstrip())


def plain(raw: bytes) -> list[str]:
    """Return the lines of `raw` as a terminal would show them finally."""
    lines = re.sub(_ESCAPES, "", raw.decode("utf-8", "replace")).split("\n")
    # Of a line only the part after the last carriage return is seen.
    shown = (line.rstrip("\r").rpartition("\r")[2].expandtabs(4) for line in lines)
    return [harmless(line, instead="").rstrip() for line in shown]


def _read(log: Path, first: int, last: int) -> bytes:
    try:
        with own_files.reading(log) as stream:
            head, _, tail = _both_ends(stream, first, last)
    except FileNotFoundError:
        return b""
    return head + (b"\n" if head and tail else b"") + tail


def _both_ends(stream: BinaryIO, first: int, last: int) -> tuple[bytes, int, bytes]:
    """Return the `first` bytes of a file, how many are left out, and the `last` bytes of the rest."""
    left_out = os.fstat(stream.fileno()).st_size - first - last
    if left_out <= 0:
        return stream.read(first + last), 0, b""
    head = stream.read(first)
    stream.seek(-last, os.SEEK_END)
    return head, left_out, stream.read(last)


def _finish(log: Path, descriptor: int) -> None:
    """Keep the first and the last KEPT_BYTES of `log`, open as `descriptor`; write it again if it is gone.

    Another file in its place, or a link, is replaced.
    """
    # On a full disk it stays as it is, and is removed when it is old.
    with suppress(OSError):
        info = os.fstat(descriptor)
        if info.st_size > 2 * KEPT_BYTES or not own_files.is_at(log, info):
            with open(descriptor, "rb", closefd=False) as stream:
                stream.seek(0)
                head, left_out, tail = _both_ends(stream, KEPT_BYTES, KEPT_BYTES)
            gap = b"\n[harness left out %d bytes here]\n" % left_out if left_out else b""
            fs.write(log, head + gap + tail, durable=False, make=True)


def note(log: Path, pid: int) -> None:
    """Write the note that the process group `pid` writes `log`."""
    leader = process.find(pid)
    if leader:
        text = f"{pid} {leader.started} {process.boot_id()}\n"
        # The command may have removed the directory already: nobody would find the note.
        with suppress(FileNotFoundError):
            fs.write(log.with_suffix(_SUFFIX), text.encode(), durable=False)


def forget(log: Path) -> None:
    """Remove the note beside `log`."""
    fs.remove(log.with_suffix(_SUFFIX))


def end_all(
    directory: Path, end: Callable[[int], None] = lambda leader: child.Tree(leader).kill(), logs: str = "*"
) -> int:
    """`end` the trees that still run according to the notes in `directory`; return how many there were.

    By default they are killed, and gone on return. `logs`: a pattern for the names of their logs.
    Fails closed: only a tree whose leader is provably the noted process is ended. A note of another boot or
    pid namespace is kept.
    """
    return sum(_end_noted(file, end) for file in sorted(fs.matching(directory, f"{logs}{_SUFFIX}")))


def _end_noted(file: Path, end: Callable[[int], None]) -> bool:
    words = file.read_text(encoding="utf-8", errors="replace").split(maxsplit=2)
    if len(words) != _WORDS or not words[0].isdigit():
        # Not durable: after a power cut it may be empty, and its process is gone.
        fs.remove(file)
        return False
    pid, started, boot = words
    if boot.strip() != process.boot_id():
        return False
    ours = process.is_still(int(pid), started)
    if ours:
        end(int(pid))
    fs.remove(file)
    return ours


def start_timed(command: str, *, env: environment.Env, cwd: Path, log: Path, seconds: float) -> Child:
    """Start `sh -c command`, its output added to `log`; return its guard, which exits as the command does.

    After `seconds` the command's process group is ended, and the guard exits with TIMED_OUT. Raises OSError.
    """
    from harness_lib.system.install import launcher  # noqa: PLC0415 (a check needs none)

    guarded = launcher.python("from harness_lib.system.processes.runner import guard; guard()")
    with _opened(log, flags=0) as output:
        return child.start([*guarded, command, str(seconds)], env=env, cwd=cwd, output=output)


def guard() -> None:
    """Run the command of our arguments, and end it when its time is over."""
    command, seconds = sys.argv[1], float(sys.argv[2])
    process = subprocess.Popen(["sh", "-c", command], start_new_session=True)
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        child.end(process)
        code = TIMED_OUT
    sys.exit(code if code >= 0 else 128 - code)


@contextmanager
def keeping_awake(env: environment.Env, why: str, *, platform: str = sys.platform) -> Iterator[None]:
    """Keep the machine awake inside the block; `why` is the reason that the system shows.

    Without a program for that, or if it fails (in a container, say), the machine may fall asleep as before.
    The program always ends with us, also when we are killed: `caffeinate -w` watches our pid, and what
    `systemd-inhibit` runs ends when the pipe that only we hold is closed.
    """
    name = "caffeinate" if platform == "darwin" else "systemd-inhibit"
    program = environment.find(name, env.get("PATH", os.defpath))
    if program is None:
        yield
        return
    if platform == "darwin":
        command = [program, "-i", "-w", str(os.getpid())]
    else:
        command = [program, "--what=idle:sleep", "--who=harness", f"--why={why}", "--mode=block", "cat"]
    try:
        # In a session of its own, it hears no Ctrl-C and finds no terminal to ask for a password on.
        process = child.start(command, env=env, cwd="/", stdin=child.PIPE)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        child.end(process)

"""Foreign programs: started in a group of their own, fed, bounded, and ended with everything they started."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from harness_lib.loop import disk
from harness_lib.loop.piped import HookError
from harness_lib.system.processes import own_process, runner
from harness_lib.system.processes.child import (
    NOTHING,
    OUTPUT,
    PIPE,
    Child,
    Command,
    Ending,
    Starter,
    Tree,
    end,
    end_tree,
    signal_group,
    start,
    start_noted,
    wait,
)

OUTPUT_LIMIT = 64 * 1024 * 1024
# The most that is reported at once of what a running program prints: its end.
_HEARD_BYTES = 8192
# A flag is answered at once or not at all.
FLAG_SECONDS = 10.0
# Bytes of a program in which its first line ends.
_FIRST = 1024
# The process groups that run now, which Ctrl-C has to end.
_running: set[int] = set()
# For each thread but the main one: the event that tells it to end its program.
_of_thread = threading.local()


class Interrupted(BaseException):
    """The user or the system wants this process to end.

    `printed` is what the tool that was running had printed until then.
    """

    printed = ""


class _Held:
    """The blocks that hold signals back now, and the signal that waits for their end."""

    blocks = 0
    pending = 0


def interrupt(number: int, frame: object) -> None:  # noqa: ARG001 (as signals call it)
    """Raise Interrupted, now or at the end of the block that holds signals back."""
    if _Held.blocks:
        _Held.pending = number
        return
    raise Interrupted(number)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals back during the block, which must not be left in the middle.

    Raises Interrupted at the end of the outermost block, also in the place of an error of its own: later the
    signal would interrupt something else.
    """
    # They interrupt the main thread only.
    held = int(threading.current_thread() is threading.main_thread())
    _Held.blocks += held
    try:
        yield
    finally:
        _Held.blocks -= held
        if held and not _Held.blocks and _Held.pending:
            number, _Held.pending = _Held.pending, 0
            raise Interrupted(number)


class UnderWay:
    """Work of the main thread: the signals `numbers` raise Interrupted inside the block and nothing outside.

    `changed` is called whenever work has begun or ended. One may come just before the end is noted: who
    catches Interrupted around the block notes it.
    """

    def __init__(self, *numbers: signal.Signals, changed: Callable[[], None] = lambda: None) -> None:
        self.now = False
        self._changed = changed
        for number in numbers:
            own_process.handle(number, self._signalled)

    def __enter__(self) -> None:
        self.now = True
        self._changed()

    def __exit__(self, *_: object) -> None:
        self.now = False
        self._changed()

    def interrupt(self) -> bool:
        """Interrupt the work from another thread; return whether there was any."""
        is_working, main = self.now, threading.main_thread().ident
        # To the main thread: a signal that another thread gets interrupts no waiting there.
        if is_working and main is not None:
            signal.pthread_kill(main, signal.SIGINT)
        return is_working

    def _signalled(self, number: int, frame: object) -> None:
        if self.now:
            interrupt(number, frame)


@contextmanager
def ended_by(event: threading.Event) -> Iterator[None]:
    """End what this thread runs when `event` is set: signals reach the main thread only."""
    _of_thread.event = event
    try:
        yield
    finally:
        del _of_thread.event


class Finished(NamedTuple):
    """How a program ended; `output` is a file at its beginning, which the caller closes."""

    code: int
    reason: Ending
    output: IO[bytes]

    def text(self) -> str:
        """Return the whole output; what is no UTF-8 is replaced. Closes the file."""
        with self.output as stream:
            return stream.read().decode("utf-8", "replace").replace("\0", "")


@contextmanager
def talking(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path, errors: IO[bytes]
) -> Iterator[Child]:
    """Start `command` with pipes for a conversation, and end it with the block. Raises OSError."""
    child: Child | None = None
    try:
        # It could not be ended before its id is known.
        with uninterrupted():
            child = start(command, env=env, cwd=cwd, stdin=PIPE, output=PIPE, errors=errors)
            _running.add(child.pid)
        yield child
    finally:
        if child is not None:
            _end_talk(child)


def _end_talk(child: Child) -> None:
    if child.poll() is None:
        end(child)
    _running.discard(child.pid)
    for stream in (child.stdin, child.stdout):
        # Input that the program never read cannot be flushed.
        with suppress(BrokenPipeError):
            assert stream is not None
            stream.close()


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes | None = None,
    merge: bool = False,
    log: str = "",
    timeout: float = float("inf"),
    notes: Path | None = None,
    output: IO[bytes] | None = None,
    heard: Callable[[bytes], None] | None = None,
    starter: Starter | None = None,
) -> Finished:
    """Run `command` to its end, or until `timeout` seconds or OUTPUT_LIMIT bytes of output have passed.

    `stdin`: None gives it nothing to read. Standard error goes to the output (`merge`), the file `log`, or is
    ours. `notes`: a directory that says that it runs, for `end_noted` where we are killed; without a
    `starter` (that of a `Command`, with `merge` only) it begins a moment before. `output`: the file for its
    output, which stays open when this is interrupted. `heard` is called with the newest output while it runs.
    Raises OSError where it cannot be started.
    """
    written = output or tempfile.TemporaryFile()  # noqa: SIM115 (handed to the caller)
    # Files, not pipes: a program never waits for a reader, and large output stays out of memory.
    # One that cannot be noted outlives hs if that is killed.
    noted = notes and notes / os.urandom(8).hex()
    with ExitStack() as fed:
        errors = None
        # Without the log, its reader hears it on standard error.
        with suppress(OSError):
            errors = fed.enter_context(disk.appending(log)) if log not in {"", "/dev/stderr"} else None
        given = NOTHING if stdin is None else fed.enter_context(_holding(stdin))
        child: Child | None = None

        def begun(started: Child) -> None:
            nonlocal child
            child = started
            _running.add(started.pid)
            if noted:
                with suppress(OSError):
                    runner.note(noted, started.pid)

        try:
            # It could not be ended before its id is known.
            with uninterrupted():
                if starter:
                    ready = Command(command, env, starter)
                    child = start_noted(ready, begun, cwd=cwd, stdin=given, output=written)
                else:
                    to = OUTPUT if merge else errors
                    child = start(command, env=env, cwd=cwd, stdin=given, output=written, errors=to)
                    begun(child)
            look = _look(written, heard)
            reason = wait(child, written.fileno(), timeout=timeout, limit=OUTPUT_LIMIT, on_tick=look)
            if reason != "ended":
                end(child)
        except BaseException:
            if child:
                end(child)
            if not output:
                written.close()
            raise
        finally:
            if noted:
                with suppress(OSError):
                    runner.forget(noted)
            if child is not None:
                _running.discard(child.pid)
    written.seek(0)
    return Finished(child.returncode, reason, written)


def _look(output: IO[bytes], heard: Callable[[bytes], None] | None) -> Callable[[], bool]:
    """Return a function to call while a program runs: it reports new output.

    It raises Interrupted if this thread is told to end.
    """
    at = 0
    told: threading.Event | None = getattr(_of_thread, "event", None)

    def look() -> bool:
        nonlocal at
        size = os.fstat(output.fileno()).st_size
        if heard and size > at:
            # Not by seeking: the program writes at the position of this file.
            begin, at = max(at, size - _HEARD_BYTES), size
            heard(os.pread(output.fileno(), size - begin, begin))
        if told and told.is_set():
            raise Interrupted
        return True

    return look


def first_line(path: str) -> str:
    """Return the first line of the file `path`, at most 1 KiB; "" if it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return stream.readline(_FIRST).decode("utf-8", "replace").removesuffix("\n")
    except OSError:
        return ""


def command_of(path: str, *args: str) -> list[str]:
    """Return what runs a program; as in a shell, sh runs a text whose first line names no interpreter."""
    first = first_line(path)
    return [path, *args] if first.startswith("#!") or "\0" in first else ["/bin/sh", path, *args]


def fault(path: str) -> str:
    """Return what is wrong with the first line of a program, so that it cannot be started; "" for nothing."""
    first = first_line(path)
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return ""
    if first.endswith("\r"):
        return "its first line ends in a carriage return (CRLF); save it with LF"
    return "" if Path(words[0]).exists() else f"its first line names {words[0]}, which is not there"


def printed(
    path: str,
    *args: str,
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes | None = None,
    log: str = os.devnull,
    seconds: float = 0.0,
) -> str:
    """Return what the program of a plugin prints. Raises HookError, which says how it has failed.

    It may take so many `seconds`, 0: those of a flag.
    """
    seconds = seconds or FLAG_SECONDS
    try:
        done = run(command_of(path, *args), env=env, cwd=cwd, stdin=stdin, log=log, timeout=seconds)
    except OSError as error:
        raise HookError(f"cannot be started: {fault(path) or error.strerror}", "") from error
    text = done.text()
    if done.reason == "timeout":
        raise HookError(f"did not end within {seconds:.0f} seconds", "")
    if done.reason == "loud":
        raise HookError(f"printed more than {OUTPUT_LIMIT} bytes", "")
    if done.code != 0:
        raise HookError(f"exited {done.code}", text.rstrip("\n"))
    return text


def _holding(data: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 (handed to the caller)
    file.write(data)
    file.seek(0)
    return file


def end_noted(directory: Path) -> int:
    """End what still runs by the notes in `directory`, after a kill; return the number of programs."""
    return runner.end_all(directory, lambda leader: end_tree(leader, lambda: True))


def end_all() -> None:
    """Begin to end every program of this process; the thread that waits for it does the rest."""
    for group in list(_running):
        signal_group(group, signal.SIGTERM)


def kill_all() -> None:
    """Kill the programs of this process at once."""
    for group in list(_running):
        Tree(group).signal(signal.SIGKILL)

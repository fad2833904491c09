"""Handle the signals and the standard streams of this process, and send signals to others."""

from __future__ import annotations

import io
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

INTERRUPT, END, HANG_UP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
KILL, PAUSE, GO_ON = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT
AGAIN_SECONDS = 0.1

Handler = Callable[[int, FrameType | None], None]


def ignore(number: int) -> None:
    """Ignore the signal `number` from now on."""
    signal.signal(number, signal.SIG_IGN)


def raise_once(number: int, error: Callable[[int], BaseException]) -> None:
    """Raise `error(number)` at the first signal, and ignore later ones: they would disturb the cleanup.

    A signal that does not have its default action is left alone: nohup ignores SIGHUP on purpose.
    """
    if signal.getsignal(number) is not signal.SIG_DFL:
        return

    def end(received: int, _frame: object) -> None:
        ignore(received)
        raise error(received)

    signal.signal(number, end)


@contextmanager
def noted(note: Callable[[int], None]) -> Iterator[None]:
    """Inside the block, only call `note` for each signal that asks this process to end.

    SIGHUP stays ignored for a process that was started by nohup.
    """

    def handle(number: int, _frame: object) -> None:
        note(number)

    numbers = [INTERRUPT, END]
    if signal.getsignal(HANG_UP) is not signal.SIG_IGN:
        numbers.append(HANG_UP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def send(pid: int, number: int) -> None:
    """Send signal `number` to the process `pid`. Raises ProcessLookupError if there is none."""
    os.kill(pid, number)


def handle(number: int, handler: Handler) -> None:
    """Call `handler` for signal `number`, also if it comes while the main thread begins to wait.

    Python runs a handler between two steps of the main thread. A signal that comes after the last such step
    and before a system call that waits interrupts nothing: Ctrl-C would be seen when the pause is over, or
    the model has answered. So a thread hears of every signal at once, and sends it again unless a handler has
    run shortly after.
    """
    global _redelivery  # noqa: PLW0603 (a process has one set of handlers)
    redelivery = _redelivery = _redelivery or _Redelivery()

    def noted(got: int, frame: FrameType | None) -> None:
        redelivery.handled.set()
        handler(got, frame)

    redelivery.watched.add(number)
    signal.signal(number, noted)


class _Redelivery:
    """Sends a signal to the main thread again until its handler has run."""

    def __init__(self) -> None:
        import threading  # noqa: PLC0415 (every verb loads this file, and none has a thread)

        main = threading.main_thread().ident
        assert main is not None
        self._main = main
        # A handler has run.
        self.handled = threading.Event()
        # The signals that are sent again.
        self.watched: set[int] = set()
        self._heard, write_end = os.pipe()
        os.set_blocking(write_end, False)
        # Python's own handler, which no call can hold back, writes the number of each signal there.
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while numbers := os.read(self._heard, 64):
            if number := next(iter(self.watched.intersection(numbers)), None):
                self.handled.wait(AGAIN_SECONDS)
                # Asked twice: on a busy machine the handler may run just as the time runs out.
                if self.handled.is_set():
                    self.handled.clear()
                else:
                    # The repeated signal writes to the pipe too, so that this loop looks again.
                    signal.pthread_kill(self._main, number)


_redelivery: _Redelivery | None = None


def open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed, also one that this process has closed.

    Otherwise the next file that is opened gets its number, and child processes print into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            # It gets the lowest free number, which is that of this stream: those before it are open by now.
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)  # noqa: FBT003 (it takes no names)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 (for good)


def take_any_character(instead: str) -> None:
    """Let stdout and stderr print what their encoding lacks, as the error handler `instead` replaces it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=instead)


def drop_unwritten() -> None:
    """Discard what stdout and stderr still have to write, if it cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
            with suppress(OSError):
                stream.flush()


def leave_terminal() -> None:
    """Redirect standard streams that are a terminal to the null device: the terminal was closed."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        # A closed terminal no longer says that it is one.
        if stat.S_ISCHR(os.fstat(descriptor).st_mode):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)

"""Signals: what this process makes of those that it gets, and those that it sends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INTERRUPT, END, HANG_UP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def is_default(number: int) -> bool:
    """Return whether nobody has said yet what the signal `number` comes to."""
    return signal.getsignal(number) is signal.SIG_DFL


def ignore(number: int) -> None:
    """Let the signal `number` come to nothing from now on."""
    signal.signal(number, signal.SIG_IGN)


def raise_once(number: int, error: Callable[[int], BaseException]) -> None:
    """Raise `error(number)` when the signal comes; a second one must not break what the first one set off."""

    def end(received: int, _frame: object) -> None:
        ignore(received)
        raise error(received)

    signal.signal(number, end)


@contextmanager
def noted(note: Callable[[int], None]) -> Iterator[None]:
    """Inside, call `note` for each signal that asks us to end, and do nothing else.

    Who was started with nohup goes on ignoring that the terminal is closed.
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


def end_ourselves() -> None:
    """Let this process end as if somebody had asked for it."""
    os.kill(os.getpid(), END)


def kill(pid: int) -> None:
    """End the process `pid` at once; it can clean up nothing. Raises OSError."""
    os.kill(pid, signal.SIGKILL)

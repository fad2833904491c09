"""Let processes have a lock in the order in which they came.

A lock that is polled is a lottery: of thirty waiters most are served soon, a few not within half a minute,
and all of them burn time with asking. The kernel wakes those who wait for one flock in the order in which
they came.
Only fairness depends on it: who gets no turn in time, or cannot make its file, asks the lock itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_lib.system.files import advisory


@contextmanager
def if_nobody_waits(path: Path) -> Iterator[bool]:
    """Yield whether nobody stands in line at the file `path`; then nobody's turn comes before the body ends.

    Raises OSError.
    """
    descriptor = advisory.opened_and_taken(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def turn(path: Path, timeout: float) -> Iterator[None]:
    """Stand in line at the file `path`; the body runs when it is our turn, or after `timeout` seconds.

    The next one's turn comes when the body ends, or with our death.
    """
    try:
        descriptor = advisory.opened(path)
    except FileNotFoundError:
        # Its directory was deleted this moment; whoever needs it makes it again.
        yield
        return
    if not advisory.take_now(descriptor) and not _Place(descriptor).reaches_front(timeout):
        yield
        return
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def line(path: Path, on_wait: Callable[[], None], every: float) -> Iterator[None]:
    """Stand in line at the file `path` for as long as it takes; the body runs when it is our turn.

    `on_wait` is called each `every` seconds; what it raises gives up the place.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        yield
        return
    place = None
    try:
        if not advisory.take_now(descriptor):
            place = _Place(descriptor)
            place.begin()
            while not place.is_front(every):
                on_wait()
        yield
    finally:
        if place is None:
            os.close(descriptor)
        else:
            place.leave()


class _Place:
    """A place in the line. A flock that waits cannot be given up, so a thread does the waiting."""

    def __init__(self, descriptor: int) -> None:
        # Nearly everybody is alone, and loads no threads.
        import threading  # noqa: PLC0415

        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._at_front = threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._given_up = False

    def reaches_front(self, timeout: float) -> bool:
        """Return True when it is our turn; False if we gave up, and the descriptor is no longer ours."""
        self.begin()
        if self.is_front(timeout):
            return True
        with self._mutex:
            self._given_up = not self._at_front.is_set()
        return not self._given_up

    def begin(self) -> None:
        """Begin to wait."""
        self._thread.start()

    def is_front(self, timeout: float) -> bool:
        """Return whether it is our turn within `timeout` seconds."""
        return self._at_front.wait(timeout)

    def leave(self) -> None:
        """Leave the line, at the front or before; the descriptor is closed then, or when our turn comes."""
        with self._mutex:
            self._given_up = True
            if self._at_front.is_set():
                os.close(self._descriptor)

    def _wait(self) -> None:
        advisory.take(self._descriptor)
        with self._mutex:
            if self._given_up:
                os.close(self._descriptor)
            else:
                self._at_front.set()

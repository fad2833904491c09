"""Locks of the kernel on files (flock): each is free again when the last process that holds it has ended.

A lock belongs to the open file: children that inherit its descriptor hold it too, which tells whether any of
a family of processes is left. A lock file is never removed: waiters on a removed file would exclude nobody.
A lock that is polled is a lottery: of thirty waiters most are served soon, a few not within half a minute,
and all of them use the processor. So `turn` makes them queue: the kernel wakes those who wait for one flock
in the order in which they came. Only fairness depends on it.
Standard library only, for hooks.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_lib.system import fs


def opened(path: Path, *, make: bool = False) -> int:
    """Return a descriptor of the lock file `path`, made for its owner alone if needed. Raises OSError.

    Its directory must exist, or is made with `make`.
    """
    if make:
        return fs.within(path.parent, lambda: opened(path))
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def take_now(descriptor: int) -> bool:
    """Take the lock without waiting; return whether we hold it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        # Some file systems raise EACCES for a held lock.
        return False
    return True


def let_go(descriptor: int) -> None:
    """Release the lock and close `descriptor`."""
    try:
        # A process that is being started may have a copy, and would hold the lock for a moment.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def take_within(descriptor: int, seconds: float) -> bool:
    """Take the lock, trying for at most `seconds`; return whether we hold it."""
    end = time.monotonic() + seconds
    while not take_now(descriptor):
        if time.monotonic() >= end:
            return False
        # A waiting flock cannot be cancelled.
        time.sleep(0.02)
    return True


def take(descriptor: int) -> None:
    """Take the lock after all that came before, without a time limit."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def hold(path: Path, *, make: bool = False) -> int | None:
    """Return a descriptor of `path` with its lock; None if another process holds it. Children may inherit it.

    Its directory must exist, or is made with `make`. Raises OSError.
    """
    descriptor, is_ours = opened(path, make=make), False
    try:
        is_ours = take_now(descriptor)
    finally:
        if not is_ours:
            os.close(descriptor)
    return descriptor if is_ours else None


@contextmanager
def attempt(path: Path, *, make: bool = False) -> Iterator[bool]:
    """Hold `path` inside the block if it is free; yield whether it was. `make` as in `hold`."""
    descriptor = hold(path, make=make)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def alone(path: Path, *, make: bool = False) -> Iterator[None]:
    """Hold `path` inside the block, waiting for its present holder. `make` as in `hold`."""
    descriptor = opened(path, make=make)
    try:
        take(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Return whether `path` is not held, or does not exist."""
    if not path.exists():
        return True
    with attempt(path) as free:
        return free


@contextmanager
def turn(path: Path, seconds: float, on_wait: Callable[[], object] | None = None) -> Iterator[None]:
    """Queue at the file `path`; the block runs when it is our turn, or after `seconds`.

    With `on_wait` it runs only when it is our turn: `on_wait` is called every `seconds`, and leaves the queue
    if it raises. The next turn comes when the block or this process ends.
    """
    try:
        descriptor = opened(path)
    except FileNotFoundError:
        # Its directory was just deleted; the lock makes it again.
        yield
        return
    place = None if take_now(descriptor) else _Place(descriptor)
    try:
        while place and not place.is_front(seconds) and on_wait:
            on_wait()
        yield
    finally:
        if not place:
            os.close(descriptor)
        else:
            place.leave()


class _Place:
    """A place in the queue. A waiting flock cannot be cancelled, so a thread waits."""

    def __init__(self, descriptor: int) -> None:
        # The queue is nearly always empty, and then no threads are loaded.
        import threading  # noqa: PLC0415

        self._descriptor = descriptor
        self._mutex = threading.Lock()
        self._at_front = threading.Event()
        self._given_up = False
        self._error: OSError | None = None
        threading.Thread(target=self._wait, daemon=True).start()

    def is_front(self, seconds: float) -> bool:
        """Return whether it is our turn within `seconds`. Raises OSError if the lock cannot be taken."""
        is_over = self._at_front.wait(seconds)
        if self._error:
            raise self._error
        return is_over

    def leave(self) -> None:
        """Leave the queue; the descriptor is closed now if it is our turn, else when it comes."""
        with self._mutex:
            self._given_up = True
            if self._at_front.is_set():
                os.close(self._descriptor)

    def _wait(self) -> None:
        try:
            take(self._descriptor)
        except OSError as error:
            # A thread that dies would let the others wait for ever.
            self._error = error
        with self._mutex:
            if self._given_up:
                os.close(self._descriptor)
            else:
                self._at_front.set()

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

from harness_lib.system.files import atomic

_RETRY_SECONDS = 0.02


def opened(path: Path) -> int:
    """Return a descriptor of the lock file `path`, made for its owner alone if needed. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def take_now(descriptor: int) -> bool:
    """Take the lock without waiting; return whether it is ours."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        # Some file systems say EACCES of what another has.
        return False
    return True


def let_go(descriptor: int) -> None:
    """Let go of the lock and close `descriptor`."""
    try:
        # A process that is just being started may have a copy, and would hold the lock for that moment.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def take_within(descriptor: int, seconds: float) -> bool:
    """Take the lock, asking again for as long as `seconds`; return whether it is ours."""
    end = time.monotonic() + seconds
    while not take_now(descriptor):
        if time.monotonic() >= end:
            return False
        # A flock that waits cannot be given up.
        time.sleep(_RETRY_SECONDS)
    return True


def take(descriptor: int) -> None:
    """Take the lock, after everybody who came before us, however long that is."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def hold(path: Path, *, make: bool = False) -> int | None:
    """Return the descriptor of `path`, held from now on; None if others hold it. Children may inherit it.

    Its directory must exist, or is made with `make`. Raises OSError.
    """
    descriptor = _opened(path, make=make)
    try:
        if take_now(descriptor):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


@contextmanager
def attempt(path: Path, *, make: bool = False) -> Iterator[bool]:
    """Hold `path` in the body if nobody else does; yields whether that is so. `make` as in `hold`."""
    descriptor = hold(path, make=make)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def alone(path: Path, *, make: bool = False) -> Iterator[None]:
    """Hold `path` in the body, after whoever holds it now. `make` as in `hold`."""
    descriptor = _opened(path, make=make)
    try:
        take(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_free(path: Path) -> bool:
    """Return whether nobody holds `path`, or it is not there."""
    if not path.exists():
        return True
    with attempt(path) as free:
        return free


def _opened(path: Path, *, make: bool) -> int:
    if make:
        return atomic.within(path.parent, lambda: _opened(path, make=False))
    return opened(path)


@contextmanager
def turn(path: Path, seconds: float, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Stand in line at the file `path`; the body runs when it is our turn, or after `seconds`.

    With `on_wait` it runs only when it is our turn: that is called each `seconds`; what it raises gives up
    the place. The next one's turn comes when the body ends, or with our death.
    """
    try:
        descriptor = opened(path)
    except FileNotFoundError:
        # Its directory was deleted this moment; whoever needs it makes it again.
        yield
        return
    place = None if take_now(descriptor) else _Place(descriptor)
    try:
        while place is not None and not place.is_front(seconds) and on_wait is not None:
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
        self._given_up = False
        threading.Thread(target=self._wait, daemon=True).start()

    def is_front(self, seconds: float) -> bool:
        """Return whether it is our turn within `seconds`."""
        return self._at_front.wait(seconds)

    def leave(self) -> None:
        """Leave the line, at the front or before; the descriptor is closed then, or when our turn comes."""
        with self._mutex:
            self._given_up = True
            if self._at_front.is_set():
                os.close(self._descriptor)

    def _wait(self) -> None:
        take(self._descriptor)
        with self._mutex:
            if self._given_up:
                os.close(self._descriptor)
            else:
                self._at_front.set()

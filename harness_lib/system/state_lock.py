"""The lock around one change of the list, held for milliseconds.

A free lock is taken at once; if it is held, filelock waits for it. Both take the same lock of the kernel on
the same file, so that they exclude each other: to load filelock takes longer than most changes, and the lock
is nearly always free.
Source: docs/design.md, "A state change".
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType

from harness_lib import timestamps
from harness_lib.errors import EnvSetupError, GoneError, HeldError
from harness_lib.system import flock, fs
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.place import own_files, roots

# Only the first in line asks, so it may ask often.
POLL_SECONDS = 0.002
_HOLDER_LIMIT = 512


class StateLock:
    """Context manager: inside it, this process alone changes the state; not reentrant.

    `timeout` is in seconds. Entering raises HeldError, naming the holder, when it has passed; EnvSetupError
    where the file system cannot lock; OSError where the lock file cannot be made.
    """

    def __init__(self, path: Path, *, timeout: float = 30.0, clock: Clock = SYSTEM) -> None:
        self.path = path
        self._timeout = timeout
        self._clock = clock
        self._queue = path.with_suffix(".turn")
        self._descriptor = -1
        # Lets go of the lock; None while we do not have it.
        self._release: Callable[[], None] | None = None

    def __enter__(self) -> StateLock:  # noqa: PYI034 (`Self` came with Python 3.11)
        deadline = self._clock.monotonic() + self._timeout
        while not self._try(deadline):
            if self._clock.monotonic() >= deadline:
                raise self._held()
            self._clock.sleep(POLL_SECONDS)
        try:
            since = timestamps.render(self._clock.now())
            text = f"pid {os.getpid()} on {os.uname().nodename} since {since}\n"
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode("utf-8", "replace"), 0)
        except BaseException:
            # On a full disk, for example: `__exit__` is not called then.
            self._let_go()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Emptied while it is held: the next one must not be told of a holder that has left.
        try:
            os.ftruncate(self._descriptor, 0)
        finally:
            self._let_go()

    def _try(self, deadline: float) -> bool:
        """Take the lock file, waiting until `deadline`; False if it is no longer the one at our path."""
        try:
            roots.make_private(self.path.parent)
        except FileNotFoundError as error:
            above = self.path.parent.parent
            if not above.is_dir():
                raise GoneError(above) from error
            # The directory went away again.
            return False
        try:
            if not self._take_if_free():
                self._take_by(deadline)
        except OSError as error:
            self._let_go()
            if error.errno in (errno.ENOENT, errno.EEXIST):
                # Its directory went away again, before or while the file was made.
                return False
            raise self._explained(error) from error
        except BaseException:
            self._let_go()
            raise
        # `.harness/` may have been made again since.
        if own_files.is_at(self.path, os.fstat(self._descriptor)):
            return True
        self._let_go()
        return False

    def _take_if_free(self) -> bool:
        """Take the lock if nobody has it and nobody stands in line for it; return whether we hold it."""
        with flock.attempt(self._queue) as nobody_waits:
            descriptor = flock.hold(self.path) if nobody_waits else None
        if descriptor is None:
            return False
        self._descriptor, self._release = descriptor, partial(flock.let_go, descriptor)
        return True

    def _take_by(self, deadline: float) -> None:
        """Wait for the lock until `deadline`."""
        # Before joining the queue: others need not wait for this import.
        from filelock import FileLock, Timeout  # noqa: PLC0415

        # The fallback of filelock without flock() is a file that survives its holder: an error is better.
        def remember(descriptor: int) -> None:
            self._descriptor, self._release = descriptor, lock.release

        lock = FileLock(
            self.path,
            poll_interval=POLL_SECONDS,
            fallback_to_soft=False,
            mode=fs.PRIVATE,
            on_acquired=remember,
        )
        try:
            with flock.turn(self._queue, (deadline - self._clock.monotonic()) / 2):
                lock.acquire(timeout=max(0.0, deadline - self._clock.monotonic()))
        except Timeout:
            raise self._held() from None

    def _let_go(self) -> None:
        release, self._release, self._descriptor = self._release, None, -1
        if release is not None:
            release()

    def _held(self) -> HeldError:
        message = f"The state is held by {holder(self.path)}: {self.path}"
        return HeldError(
            message, "A state change takes milliseconds: try again, or see what that process waits for."
        )

    def _explained(self, error: OSError) -> Exception:
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
            return error
        message = f"This file system cannot lock files: {self.path} ({error.strerror})"
        return EnvSetupError(
            message, "Keep the state on a local file system and set HARNESS_STATE_ROOT to it."
        )


def holder(path: Path) -> str:
    """Return who holds the lock file `path`, as `pid 12 on HOST since 2025-07-01T10:00:00Z`."""
    try:
        with path.open("rb") as stream:
            text = stream.read(_HOLDER_LIMIT).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        text = ""
    # Empty: it has just taken the lock.
    return text or "another process"

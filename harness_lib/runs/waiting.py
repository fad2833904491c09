"""Tell trouble that passes, which a run waits for, from what the user must settle.

A run waits for the database of the list, the remote, and room on a disk. No task is to blame when one of them
fails, so none is halted for it, and no attempt is counted.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from harness_lib import errors
from harness_lib.core.context import Context, Say
from harness_lib.errors import (
    AwayError,
    BusyError,
    ConfigError,
    EnvSetupError,
    HarnessError,
    RefusedError,
    UntrustedError,
)
from harness_lib.rules import attempts
from harness_lib.rules.events import Away, Event, Idle, Notice
from harness_lib.system.git.calls import GitError
from harness_lib.task import HaltKind
from harness_lib.text import sentence

SECONDS = 30 * 60.0
# A disk with less room than this is full.
LEAST_BYTES = 64 * 1024
SAID = "The run waits up to half an hour."
_T = TypeVar("_T")


def passes(error: HarnessError | OSError) -> bool:
    """Return whether `error` may end by itself, for every task alike."""
    return errors.passes(error) if isinstance(error, OSError) else isinstance(error, AwayError)


def why(error: HarnessError | OSError) -> str:
    """Return what is wrong as a sentence."""
    return errors.describe(error) if isinstance(error, OSError) else str(error)


class Waiting:
    """One wait; `tell` is called with what is waited for, when it begins."""

    def __init__(self, ctx: Context, tell: Say) -> None:
        self._clock, self._tell = ctx.clock, tell
        self._since: float | None = None

    def after(self, error: HarnessError | OSError) -> None:
        """Begin to wait, or go on with it. Raises `error` if that has taken too long."""
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            self._tell(f"{sentence(why(error))} {SAID}")
        if now - self._since > SECONDS:
            raise error

    def is_for_room(self, ctx: Context, place: Path) -> bool:
        """Return whether a disk is still full. Raises OSError if that has taken too long."""
        if self._since is None:
            return False
        try:
            require_room(ctx, place)
        except OSError as error:
            self.after(error)
            return True
        return False

    def over(self) -> None:
        """End the wait: what was away is back."""
        self._since = None


class Waits:
    """Which workers wait for something that is away, by number: one of them tells it for all."""

    def __init__(self) -> None:
        self._numbers: set[int | None] = set()

    def shown(self, event: Event) -> Event | None:
        """Return `event` as it is shown; None if another worker waits and has told so already."""
        if isinstance(event.news, Away):
            is_told = bool(self._numbers)
            self._numbers.add(event.worker)
            return None if is_told else replace(event, news=Notice("warning", event.news.message))
        if not isinstance(event.news, Idle):
            self._numbers.discard(event.worker)
        return event


def require_room(ctx: Context, place: Path) -> None:
    """Raise OSError if a disk is full on which a worker at `place`, its agent or its check writes."""
    for disk in filter(_is_full, (ctx.root.private, place, Path(tempfile.gettempdir()))):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(disk))


def _is_full(place: Path) -> bool:
    with suppress(OSError):
        disk = os.statvfs(place)
        # Root may also use what is kept for it. Some file systems count neither blocks nor files.
        free = disk.f_bavail if os.geteuid() else disk.f_bfree
        has_room = free * disk.f_frsize >= LEAST_BYTES or disk.f_blocks == 0
        has_names = disk.f_favail > 0 or disk.f_files == 0
        return not (has_room and has_names)
    return False


def until_it_works(ctx: Context, tell: Say, act: Callable[[], _T]) -> _T:
    """Return what `act` returns, as soon as nothing that it needs is away."""
    wait = Waiting(ctx, tell)
    while True:
        try:
            return act()
        except (AwayError, OSError) as error:
            if not passes(error):
                raise
            wait.after(error)
        ctx.clock.sleep(2.0)


@contextmanager
def put_off() -> Iterator[None]:
    """End the block without an error if something is away or busy; the caller tries again later."""
    try:
        yield
    except BusyError:
        return
    except (AwayError, OSError) as error:
        if not passes(error):
            raise


class HeldBackError(Exception):
    """The run starts no further agent, but the attempt needs one: the task is requeued, uncounted."""


@dataclass
class StuckError(Exception):
    """The user must act; `everywhere`: for this task and every other one.

    `halts_as`: the kind of the task's halt. UNSTARTED: the agent ended before it did anything, which may be
    the task's doing or the agent's. `then`: the command that lifts it.
    """

    kind: str
    reason: str
    hint: str = ""
    everywhere: bool = False
    halts_as: HaltKind = "ENV_SETUP"
    then: str = ""

    @classmethod
    def of(cls, error: HarnessError, then: str = "") -> StuckError:
        """Return what `error`, which stops one task, is for a run."""
        reason, halts_as, hint = error.message, attempts.of_error(error), error.hint or ""
        what, _, command = hint.rpartition(": ")
        if halts_as == "CONFIG" and what:
            # The user must edit something first: the hint says what, and ends with the command.
            reason, then = f"{sentence(reason)} {what}", command
        return cls(error.kind, reason, hint, halts_as=halts_as, then=then)


@contextmanager
def halting_task(also: type[HarnessError] = RefusedError) -> Iterator[None]:
    """Raise StuckError, which says that the user must act, for what stops the task in this block, or `also`.

    The error stays what it is if the database is away, which may come back without the user, and if the list,
    or the commands of the task, are not trusted on this machine: no task is to blame. That of a git command
    stays, too, as it is tried again: a `git gc` of the user's may have removed what was just made.
    """
    try:
        yield
    except (AwayError, UntrustedError, GitError):
        raise
    except (ConfigError, EnvSetupError, RefusedError, also) as error:
        raise StuckError.of(error) from error

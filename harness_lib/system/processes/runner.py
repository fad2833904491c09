"""Run one shell command to its end, within a deadline, and leave nothing of it running.

Its output goes straight into a file: it may be larger than memory, and it is there after a crash of ours.
Source: docs/design.md, "At the finish", step 3.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from harness_lib.errors import EnvSetupError
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.files import atomic, nofollow, printed
from harness_lib.system.processes import reaper

GRACE_SECONDS = 5.0
MAX_LOG_BYTES = 1024**3

_POLL_SECONDS = 0.25
_PAUSE = 0.02

_Ending = Literal["ended", "timeout", "loud", "told"]


class Finished(NamedTuple):
    """How a command ended.

    `returncode`: its own, negative for a signal as in `subprocess`; None if we ended it, because of the
    deadline (`timed_out`), of too much output (`too_loud`), or because `on_tick` said so (neither).
    """

    returncode: int | None
    timed_out: bool
    too_loud: bool
    seconds: float
    tail: str

    @property
    def ok(self) -> bool:
        """Whether it ended by itself and found nothing wrong."""
        return self.returncode == 0


def run(
    command: str,
    *,
    cwd: Path,
    log: Path,
    timeout: float,
    env: Mapping[str, str],
    stdin: bytes = b"",
    at_start: Callable[[int], None] | None = None,
    on_tick: Callable[[], bool] | None = None,
    at_end: Callable[[], None] | None = None,
    tick: float = 60.0,
    grace: float = GRACE_SECONDS,
    max_log: int | None = None,
    clock: Clock = SYSTEM,
) -> Finished:
    """Run `sh -c command` in `cwd` with `env` and `stdin`, all output into `log` (made anew).

    `timeout`, `tick`, `grace` in seconds. After `timeout`, or more than `max_log` bytes (default 1 GiB, or
    HARNESS_LOG_LIMIT_BYTES in `env`), its process group gets TERM, `grace` seconds later KILL.
    `at_start` gets a descriptor that reads the log, also once somebody has removed the file; it is good until
    `at_end` has returned. `on_tick` is called about every `tick` seconds; False ends the command in the same
    way. `at_end` is called once nothing of it is left, while all of its output is still there: then a long
    log is cut to both ends, and one that was removed is written again.
    Whatever it started is gone on return, also when it passed, also when an exception passes through. Daemons
    that left the process group are found on Linux only; one run at a time in a process, and what `on_tick`
    starts in a session of its own counts as the command's.
    Raises FileNotFoundError or NotADirectoryError naming `cwd` if that is no directory.
    """
    limit = _log_limit(env) if max_log is None else max_log
    watch = _Watch(clock, timeout, tick, limit, on_tick)
    with _opened(log) as output, _holding(stdin, log.parent) as stdin_file:
        with reaper.adopting() as known:
            child = None
            try:
                if at_start is not None:
                    at_start(output)
                child = _start(command, cwd, env, stdin_file, output)
                reaper.note(log, child.pid)
                ending = watch.until_it_ends(child, output)
                if ending != "ended":
                    _ask_to_end(child, grace, clock)
            finally:
                _end(child, known, clock)
                reaper.forget(log)
        if at_end is not None:
            at_end()
        printed.finish(log, output)
    return Finished(
        returncode=child.returncode if ending == "ended" else None,
        timed_out=ending == "timeout",
        too_loud=ending == "loud",
        seconds=clock.monotonic() - watch.started,
        tail=printed.tail_of(log),
    )


class _Watch:
    """Waits for the end of a command, or for a reason to end it."""

    def __init__(
        self, clock: Clock, timeout: float, tick: float, limit: int, on_tick: Callable[[], bool] | None
    ) -> None:
        self.started = clock.monotonic()
        self._clock = clock
        self._deadline = self.started + timeout
        self._tick = tick
        self._next_tick = self.started + tick
        self._limit = limit
        self._on_tick = on_tick

    def until_it_ends(self, child: subprocess.Popen[bytes], log: int) -> _Ending:
        while True:
            try:
                child.wait(self._slice())
            except subprocess.TimeoutExpired:
                reason = self._reason_to_end(log)
                if reason is not None:
                    return reason
            else:
                return "loud" if _size(log) > self._limit else "ended"

    def _slice(self) -> float:
        soonest = min(self._deadline, self._next_tick) - self._clock.monotonic()
        return min(_POLL_SECONDS, max(0.001, soonest))

    def _reason_to_end(self, log: int) -> _Ending | None:
        now = self._clock.monotonic()
        if now >= self._deadline:
            return "timeout"
        if _size(log) > self._limit:
            return "loud"
        if self._on_tick is not None and now >= self._next_tick:
            self._next_tick = now + self._tick
            return None if self._on_tick() else "told"
        return None


@contextmanager
def _opened(log: Path) -> Iterator[int]:
    """Yield a descriptor of `log`, made anew, for as long as its command runs."""
    # Appending: a command that empties its own log must not leave a hole of zeros before what follows.
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    descriptor = atomic.within(log.parent, lambda: nofollow.descriptor(log, flags))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _holding(content: bytes, directory: Path) -> Iterator[int]:
    """Yield what a command reads `content` from: a file without a name, which nobody can take away."""
    if not content:
        yield subprocess.DEVNULL
        return
    with atomic.within(directory, lambda: tempfile.TemporaryFile(dir=directory)) as stream:
        stream.write(content)
        stream.seek(0)
        yield stream.fileno()


def _start(
    command: str, cwd: Path, env: Mapping[str, str], stdin: int, output: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", command],
        cwd=cwd,
        env=dict(env),
        stdin=stdin,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _ask_to_end(child: subprocess.Popen[bytes], grace: float, clock: Clock) -> None:
    """TERM, then wait for the whole group: the shell dies at once, but what it runs may have to tidy up."""
    deadline = clock.monotonic() + grace
    reaper.signal_group(child.pid, signal.SIGTERM)
    # A stopped process acts on TERM only when it goes on.
    reaper.signal_group(child.pid, signal.SIGCONT)
    while clock.monotonic() < deadline:
        if child.poll() is not None:
            reaper.reap(child.pid)
            if not reaper.signal_group(child.pid, 0):
                return
        clock.sleep(_PAUSE)


def _end(child: subprocess.Popen[bytes] | None, known: frozenset[int], clock: Clock) -> None:
    # None: an interrupt came while it was being started. Then it is among the orphans.
    if child is not None:
        reaper.signal_group(child.pid, signal.SIGKILL)
        reaper.collect(child)
        reaper.reap(child.pid)
    reaper.end_orphans(known, clock)


def _log_limit(env: Mapping[str, str]) -> int:
    text = env.get("HARNESS_LOG_LIMIT_BYTES") or str(MAX_LOG_BYTES)
    if text.isascii() and text.isdigit():
        return int(text)
    message = f"HARNESS_LOG_LIMIT_BYTES is no number of bytes: {text}"
    raise EnvSetupError(message, "Set it to a whole number, or unset it.")


def _size(log: int) -> int:
    return os.fstat(log).st_size

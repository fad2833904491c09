"""Leave no process behind: what a command started ends with it.

A process group can be left (`setsid`), so on Linux we ask to become the parent of every orphan below us
(PR_SET_CHILD_SUBREAPER) and find daemons among our children. Elsewhere only the group is ended.
A command that we run has a process group of its own and so survives our SIGKILL; a note beside its log says
which group it is, and whoever goes on where we were ends it first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness_lib.system.clock import Clock
from harness_lib.system.files import atomic, listing, nofollow
from harness_lib.system.processes import process

_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
_PAUSE = 0.01
# An unkillable process (in a dead network mount) must not hold us for ever.
_PATIENCE = 5.0
_SUFFIX = ".running"
_WORDS = 3
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@contextmanager
def adopting() -> Iterator[frozenset[int]]:
    """Become the parent of orphans for a while; yields the children that we had before.

    The flag belongs to the whole process: one run at a time.
    """
    if not sys.platform.startswith("linux"):
        yield frozenset()
        return
    import ctypes  # noqa: PLC0415 (only who runs a check or an agent pays for it)

    libc = ctypes.CDLL(None, use_errno=True)
    before = ctypes.c_int(0)
    libc.prctl(_GET_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield frozenset(process.children(os.getpid()))
    finally:
        libc.prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def signal_group(group: int, number: int) -> bool:
    """Send signal `number` to the process group `group`; return whether anybody is in it."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # macOS says so of zombies; elsewhere somebody who became another user, whom we cannot end anyway.
        return False
    return True


def reap(group: int) -> None:
    """Collect the dead of `group` that became our children, so that they stop counting as its members."""
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def collect(child: subprocess.Popen[bytes]) -> None:
    """Wait for the end of `child`, also after an interrupt.

    One that comes between two steps of `wait(timeout)` or `poll()` leaves their lock taken: `wait()` would
    never return.
    """
    if child.returncode is None:
        try:
            child.returncode = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        except ChildProcessError:
            # It was collected in the step before the interrupt, and how it ended is lost.
            child.returncode = -signal.SIGKILL


def end_orphans(known: frozenset[int], clock: Clock) -> None:
    """Kill and collect the children that came to us since `known`, and theirs, until no new one appears.

    A child in our own session was started by ourselves: what a command started can never come into ours.
    """
    if not sys.platform.startswith("linux"):
        return
    deadline = clock.monotonic() + _PATIENCE
    while orphans := _orphans(known):
        for pid in orphans:
            _kill_and_collect(pid)
        if clock.monotonic() >= deadline:
            return
        clock.sleep(_PAUSE)


def _orphans(known: frozenset[int]) -> list[int]:
    new = (pid for pid in process.children(os.getpid()) if pid not in known)
    return [pid for pid in new if _session(pid) not in (None, os.getsid(0))]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _kill_and_collect(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, os.WNOHANG)
    except (ProcessLookupError, PermissionError, ChildProcessError):
        # It ended by itself, or became another user's: then it is not ours to end.
        return


def note(log: Path, pid: int) -> None:
    """Note that the process group `pid` writes `log`."""
    text = _described(pid)
    if text:
        try:
            atomic.write(log.with_suffix(_SUFFIX), text, durable=False)
        except FileNotFoundError:
            # The command was quicker, and has removed the directory: nobody would find the note.
            return


def _described(pid: int) -> bytes:
    leader = process.find(pid)
    return f"{pid} {leader.started} {process.boot_id()}\n".encode() if leader else b""


@contextmanager
def noting(directory: Path | None) -> Iterator[Callable[[int], None]]:
    """Yield what notes a process group in `directory` until the block ends; nothing without a directory.

    The file is there before the command is started: one that removes the directory is not in our way, nor we
    in its. What cannot be noted outlives us if we are killed, and that is all.
    """
    path = directory / f"{os.urandom(8).hex()}{_SUFFIX}" if directory else None
    try:
        descriptor = nofollow.descriptor(path, _NEW) if path else None
    except OSError:
        descriptor = None

    def noted(pid: int) -> None:
        if descriptor is not None:
            with suppress(OSError):
                os.write(descriptor, _described(pid))

    try:
        yield noted
    finally:
        if path is not None and descriptor is not None:
            os.close(descriptor)
            with suppress(OSError):
                path.unlink(missing_ok=True)


def forget(log: Path) -> None:
    """Remove the note: the command has ended."""
    atomic.remove(log.with_suffix(_SUFFIX))


def _kill(group: int) -> None:
    signal_group(group, signal.SIGKILL)


def end_all(directory: Path, end: Callable[[int], None] = _kill) -> int:
    """`end` the groups that still run according to the notes in `directory`; return how many there were.

    Fail closed: only a group whose leader is provably the process that was noted is ended; the note of one
    that cannot be looked at from here (another boot or pid namespace) is left.
    """
    return sum(_end(file, end) for file in sorted(listing.matching(directory, f"*{_SUFFIX}")))


def _end(file: Path, end: Callable[[int], None]) -> bool:
    words = file.read_text(encoding="utf-8", errors="replace").split(maxsplit=2)
    if len(words) != _WORDS or not words[0].isdigit():
        # Not durable: after a power cut it may be empty, and what it told of is gone with the power.
        atomic.remove(file)
        return False
    pid, started, boot = words
    if boot.strip() != process.boot_id():
        return False
    leader = process.find(int(pid))
    ours = leader is not None and leader.started == started
    if ours:
        end(int(pid))
    atomic.remove(file)
    return ours

"""End what a killed process of ours has left running.

A command that we run has a process group of its own and so survives our SIGKILL; a note beside its log says
which group it is, and whoever goes on where we were ends it first.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness_lib.system.files import atomic, listing, nofollow
from harness_lib.system.processes import process, reaper

_SUFFIX = ".running"
_WORDS = 3
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


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
    reaper.signal_group(group, signal.SIGKILL)


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

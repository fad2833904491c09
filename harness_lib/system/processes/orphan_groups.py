"""End what a killed process of ours has left running.

A command that we run has a process group of its own and so survives our SIGKILL; a note beside its log says
which group it is, and whoever goes on where we were ends it first.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from harness_lib.system.files import atomic, listing
from harness_lib.system.processes import process, reaper

_SUFFIX = ".running"
_WORDS = 3


def note(log: Path, pid: int) -> None:
    """Note that the process group `pid` writes `log`."""
    leader = process.find(pid)
    if leader is not None:
        text = f"{pid} {leader.started} {process.boot_id()}\n"
        try:
            atomic.write(log.with_suffix(_SUFFIX), text.encode(), durable=False)
        except FileNotFoundError:
            # The command was quicker, and has removed the directory: nobody would find the note.
            return


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

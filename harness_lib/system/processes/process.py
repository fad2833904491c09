"""Read what the system knows about a process: its parent, its start, and whether it lives.

On Linux from /proc, without a child process; elsewhere from `ps`.
A zombie counts as gone: it holds nothing and does nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
# More than a line of `stat` can have.
_STAT_BYTES = 4096
# Fields of /proc/PID/stat behind the name, counted from 0: proc(5) numbers them 3, 4, 5 and 22.
_STAT = (0, 1, 2, 19)
# Node.js 24 calls its first thread so, and Linux calls a process by its first thread.
_THREAD = "MainThread"
_PS, _PS_STARTED = "stat=,ppid=,pgid=,lstart=,comm=", 5
# State, parent, group, start and name, as the system tells them.
_Fields = tuple[str, str, str, str, str]
# The pid namespace that a Linux machine begins with, as /proc shows it.
FIRST_NAMESPACE = "pid:[4026531836]"


class Process(NamedTuple):
    """A process, its `name` without a directory, and its process group.

    `started` is an opaque token: pids are reused; pid, boot id and start together are unique.
    """

    pid: int
    parent: int
    name: str
    started: str
    group: int = 0


def find(pid: int, fields: _Fields | None = None) -> Process | None:
    """Return the living process `pid`, or None if it is gone, a zombie, or hidden from us.

    `fields` are what the system says of it, if they were just read.
    """
    fields = fields or _fields(pid)
    if not fields or fields[0].startswith(("Z", "X")):
        return None
    _, parent, group, started, name = fields
    if name == _THREAD:
        with suppress(OSError):
            name = str((_PROC / str(pid) / "exe").readlink()).removesuffix(" (deleted)")
    return Process(pid, int(parent), name.rpartition("/")[2], started, int(group))


def is_still(pid: int, started: str) -> bool:
    """Return whether the process `pid` that began at `started` lives, and not a later one of this number."""
    found = find(pid)
    return found is not None and found.started == started


def alive(pid: int) -> bool:
    """Return whether process `pid` lives; one that may not be signalled does (EPERM)."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    fields = _fields(pid)
    # It took the signal and has no entry: hidden (hidepid), or just ended. That proves nothing.
    return not fields or not fields[0].startswith(("Z", "X"))


def ancestors() -> Iterator[Process]:
    """Yield the ancestors of this process, nearest first, as far as visible."""
    above = os.getppid()
    seen: set[int] = set()
    while above > 0 and above not in seen:
        seen.add(above)
        process = find(above)
        if not process:
            return
        yield process
        above = process.parent


def children(pid: int) -> list[int]:
    """Return the pids of the children of `pid`, zombies included."""
    if pid == os.getpid() and hasattr(os, "waitid"):
        # Usually there is none, and to look at all processes takes long.
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return []
    return [child for child, fields in _all() if int(fields[1]) == pid]


def everybody() -> Iterator[Process]:
    """Yield all visible living processes."""
    yield from filter(None, (find(pid, fields) for pid, fields in _all()))


def directory(pid: int) -> str | None:
    """Return the current directory of process `pid`; None if this system does not tell."""
    try:
        return str((_PROC / str(pid) / "cwd").readlink())
    except OSError:
        return None


def user(entry: Path) -> int | None:
    """Return who owns the files that the process of this directory in /proc makes; None if it is gone."""
    try:
        status = (entry / "status").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    uids = next(line for line in status.splitlines() if line.startswith("Uid:"))
    return int(uids.split()[-1])


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return the id of this boot and, on Linux, of this pid namespace: `BOOT/NAMESPACE`; "" if unknown.

    A pid is meaningless without it.
    """
    if has_proc():
        try:
            boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
            return f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
        except OSError:
            return ""
    # Not kern.boottime: that changes when the clock is set, and another boot counts as proof of death.
    return _run("sysctl", "-n", "kern.bootsessionuuid").strip()


def in_own_namespace() -> bool:
    """Return whether this process is in a container or sandbox whose pids are meaningless outside."""
    namespace = boot_id().partition("/")[2]
    return bool(namespace) and namespace != FIRST_NAMESPACE


@lru_cache(maxsize=1)
def has_proc() -> bool:
    """Return whether this system has its processes in /proc."""
    return sys.platform.startswith("linux") and (_PROC / "self/stat").exists()


def _all() -> Iterator[tuple[int, _Fields]]:
    if has_proc():
        # A Path for each process would cost more than reading it.
        pids = (int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208
        listed = ((pid, _of_proc(pid)) for pid in pids)
    else:
        rows = (line.split() for line in _run("ps", "-A", "-o", f"pid=,{_PS}").splitlines())
        listed = ((int(pid), _of_ps(words)) for pid, *words in rows)
    yield from ((pid, fields) for pid, fields in listed if fields)


def _fields(pid: int) -> _Fields | None:
    return _of_proc(pid) if has_proc() else _of_ps(_run("ps", "-o", _PS, "-p", str(pid)).split())


def _of_ps(words: list[str]) -> _Fields | None:
    if len(words) < 4 + _PS_STARTED:
        return None
    state, parent, group, *more = words
    return state, parent, group, " ".join(more[:_PS_STARTED]), " ".join(more[_PS_STARTED:])


def _of_proc(pid: int) -> _Fields | None:
    """Return the fields of one read: attempts look at every process."""
    try:
        handle = os.open(os.path.join(_PROC, str(pid), "stat"), os.O_RDONLY)  # noqa: PTH118 (see `_all`)
    except OSError:
        return None
    try:
        text = os.read(handle, _STAT_BYTES).decode("utf-8", "replace")
    except OSError:
        # It has just ended.
        return None
    finally:
        os.close(handle)
    # The name is in brackets and may have brackets and spaces.
    head, _, rest = text.rpartition(")")
    words = rest.split()
    if not words:
        return None
    state, parent, group, started = (words[at] for at in _STAT)
    return state, parent, group, started, head.partition("(")[2]


def _run(*command: str) -> str:
    """Return what `command` prints, "" if it fails; in UTC, as `lstart` depends on the time zone."""
    import subprocess  # noqa: PLC0415 (hooks on Linux never need it, and it is the slowest import here)

    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = subprocess.run(command, capture_output=True, env=env, stdin=subprocess.DEVNULL, check=False)
    except OSError:
        # Not there, or set-user-ID, as `ps` is: that does not start in the sandbox of an agent on macOS.
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

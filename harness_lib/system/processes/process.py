"""Read what the system knows about a process: its parent, its start, and whether it lives.

On Linux from /proc, without a child process; elsewhere from `ps`.
A zombie counts as gone: it holds nothing and does nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
# More than a line of `stat` can have.
_STAT_BYTES = 4096
# Fields of /proc/PID/stat behind the name, counted from 0: proc(5) numbers them 3, 4 and 22.
_STATE, _PARENT, _STARTED = 0, 1, 19
_PS_STARTED = 5
# The pid namespace that a Linux machine begins with, as /proc shows it.
FIRST_NAMESPACE = "pid:[4026531836]"


class Process(NamedTuple):
    """A process, its `name` without a directory.

    `started` is an opaque token: pids are reused; pid, boot id and start together are unique.
    """

    pid: int
    parent: int
    name: str
    started: str


def find(pid: int) -> Process | None:
    """Return the living process `pid`, or None if it is gone, a zombie, or hidden from us."""
    fields = _proc_fields(pid) if has_proc() else _ps_fields(pid)
    if fields is None or fields[0].startswith(("Z", "X")):
        return None
    _, parent, started, name = fields
    return Process(pid, int(parent), name.rpartition("/")[2], started)


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
    fields = _proc_fields(pid) if has_proc() else _ps_fields(pid)
    # It took the signal and has no entry: hidden (hidepid), or just ended. That proves nothing.
    return fields is None or not fields[0].startswith(("Z", "X"))


def ancestors(pid: int | None = None) -> Iterator[Process]:
    """Yield the ancestors of `pid` (default: of this process), nearest first, as far as visible."""
    start = find(pid) if pid is not None else None
    above = os.getppid() if pid is None else (start.parent if start else 0)
    seen: set[int] = set()
    while above > 0 and above not in seen:
        seen.add(above)
        process = find(above)
        if process is None:
            return
        yield process
        above = process.parent


def children(pid: int) -> list[int]:
    """Return the pids of the children of `pid`, zombies included."""
    if pid == os.getpid() and not _has_children():
        return []
    return [child for child, parent in _parents() if parent == pid]


def _has_children() -> bool:
    # Usually there is none, and to look at all processes takes long.
    if not hasattr(os, "waitid"):
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def group(pid: int) -> int | None:
    """Return the process group of `pid`; None if it is gone or hidden."""
    try:
        return os.getpgid(pid)
    except (ProcessLookupError, PermissionError):
        return None


def everybody() -> Iterator[Process]:
    """Yield all visible living processes."""
    if has_proc():
        yield from filter(None, (find(pid) for pid, _ in _parents()))
        return
    for line in _run("ps", "-A", "-o", "pid=,stat=,ppid=,lstart=,comm=").splitlines():
        pid, *words = line.split()
        fields = _of_ps(words)
        if fields is not None and not fields[0].startswith("Z"):
            yield Process(int(pid), int(fields[1]), fields[3].rpartition("/")[2], fields[2])


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


def _proc_fields(pid: int) -> tuple[str, str, str, str] | None:
    """Return state, parent, start and name; the name is in brackets and may have brackets and spaces."""
    line = _stat(str(pid))
    if line is None:
        return None
    text = line.decode("utf-8", "replace")
    name = text[text.index("(") + 1 : text.rindex(")")]
    rest = text[text.rindex(")") + 1 :].split()
    return rest[_STATE], rest[_PARENT], rest[_STARTED], name


def _ps_fields(pid: int) -> tuple[str, str, str, str] | None:
    return _of_ps(_run("ps", "-o", "stat=,ppid=,lstart=,comm=", "-p", str(pid)).split())


def _of_ps(words: list[str]) -> tuple[str, str, str, str] | None:
    if len(words) < 3 + _PS_STARTED:
        return None
    started = " ".join(words[2 : 2 + _PS_STARTED])
    return words[0], words[1], started, " ".join(words[2 + _PS_STARTED :])


def _parents() -> Iterator[tuple[int, int]]:
    if not has_proc():
        for line in _run("ps", "-A", "-o", "pid=,ppid=").splitlines():
            pid, parent = line.split()
            yield int(pid), int(parent)
        return
    for name in os.listdir(_PROC):  # noqa: PTH208 (a Path for each process costs more than reading it)
        stat = _stat(name) if name.isdigit() else None
        if stat is not None:
            yield int(name), int(stat.rpartition(b")")[2].split(None, _PARENT + 1)[_PARENT])


def _stat(pid: str) -> bytes | None:
    """Return the line of /proc/PID/stat in one read: attempts read it of every process."""
    try:
        handle = os.open(os.path.join(_PROC, pid, "stat"), os.O_RDONLY)  # noqa: PTH118 (see `_parents`)
    except OSError:
        return None
    try:
        return os.read(handle, _STAT_BYTES) or None
    except OSError:
        # It has just ended.
        return None
    finally:
        os.close(handle)


def _run(*command: str) -> str:
    """Return what `command` prints, "" if it fails; in UTC, as `lstart` depends on the time zone."""
    import subprocess  # noqa: PLC0415 (hooks on Linux never need it, and it is the slowest import here)

    env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        done = subprocess.run(command, capture_output=True, env=env, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

"""The lock directory of the legacy protocol, so that its agents and harness exclude each other.

It is `mkdir` on a name that everybody can compute, with the holder's `pid` in it.
An agent of the legacy protocol takes over a directory without a `pid` at once. So the directory of harness
never appears without one: it is made under another name, and taken and released by renames. It does not
protect against an agent that was stopped between two of its shell commands. Source: docs/protocol.md,
"Concurrency Control"; docs/design.md, "A stale lock directory".
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from harness_lib import sha256, timestamps
from harness_lib.errors import HeldError
from harness_lib.system import fs
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.processes import process

NO_PID_SECONDS = 10.0
# Only one process of harness polls at a time: the others wait for the state lock.
POLL_SECONDS = 0.002
_PID = "pid"
# Says that the directory was handed to the owner of a session of harness, which can be looked up.
_MARK = "harness-session"
_PID_LIMIT = 64


class Holder(NamedTuple):
    """The holder of the directory; `pid` is None if none is written (yet).

    `foreign`: a symlink, or another user's. `handed`: harness handed it to `pid`, the owner of a session.
    `identity` is that of the directory, as a later one has the same name, and `changed` when that changed.
    """

    pid: int | None
    since: datetime
    identity: tuple[int, int]
    changed: float
    foreign: bool = False
    handed: bool = False


OverRule = Callable[[Holder], bool]


def path_for(root: Path) -> Path:
    """Return the lock directory of the state root `root`, as the protocol's shell commands compute it."""
    digest = sha256.digest(os.fsencode(os.path.realpath(root)))
    return Path(f"/tmp/harness-{digest[:16]}.lock")  # noqa: S108 (the name is the protocol's)


def holder_of(path: Path) -> Holder | None:
    """Return who holds the lock directory `path`, or None if there is none."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return None
    identity = (info.st_dev, info.st_ino)
    changed = datetime.fromtimestamp(info.st_mtime, timezone.utc)
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        return Holder(None, changed, identity, info.st_mtime, foreign=True)
    pid, since = _read_pid(path / _PID)
    handed = os.path.lexists(path / _MARK)
    return Holder(pid, since or changed, identity, info.st_mtime, handed=handed)


class SeedLock:
    """The lock directory of one state root; `acquire` and `release` may be called by different processes."""

    def __init__(self, root: Path, clock: Clock = SYSTEM) -> None:
        self.path = path_for(root)
        self._clock = clock

    def acquire(
        self,
        pid: int,
        *,
        deadline: float,
        ours: Collection[int] = (),
        over: OverRule = lambda _holder: False,
    ) -> int:
        """Take the directory for `pid`, waiting until the monotonic `deadline`, and return whose it is now.

        That is `pid`, or a living process in `ours`, a session of harness, with which the caller shares it; 0
        if it is a symlink, another user's, or not writable: then it is left alone.
        `over` returns whether a living holder that is not in `ours` is known to hold nothing any more.
        Raises HeldError naming the holder when `deadline` has passed.
        """
        while (holder := self._try(pid, ours, over)) is None:
            if self._clock.monotonic() >= deadline:
                raise _held(self.path)
            self._clock.sleep(POLL_SECONDS)
        return holder

    def release(self, pid: int, to: int | None = None) -> None:
        """Release the directory of `pid`, or hand it to the process `to`, whose session outlives this one.

        Files of others in it are never removed.
        """
        seen = holder_of(self.path)
        if not seen or seen.foreign or seen.pid != pid:
            return
        if to is None:
            self._retire(seen)
        else:
            # By rename: an agent that reads half a number would take the lock over.
            fs.write(self.path / _MARK, b"", durable=False)
            fs.write(self.path / _PID, b"%d\n" % to, durable=False)

    def sweep(self) -> None:
        """Remove directories under private names that processes left when they died in `_retire`."""
        limit = self._clock.time() - fs.STALE_SECONDS
        for private in self.path.parent.glob(f"{self.path.name}.*"):
            seen = holder_of(private)
            if seen and not seen.foreign and seen.changed < limit and self._is_stale(seen):
                _remove(private)

    def _try(self, pid: int, ours: Collection[int], over: OverRule) -> int | None:
        if os.path.lexists(self.path):
            return self._join(pid, ours, over)
        try:
            self._make(pid)
        except FileExistsError:
            return self._join(pid, ours, over)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                return 0
            raise
        return pid

    def _make(self, pid: int) -> None:
        """Make the directory with `pid` in it. Raises OSError: FileExistsError if there is one."""
        private = self._private()
        private.mkdir(0o755)
        try:
            (private / _PID).write_bytes(b"%d\n" % pid)
            rename(private, self.path)
        except OSError:
            _remove(private)
            raise

    def _private(self) -> Path:
        return self.path.with_name(f"{self.path.name}.{os.urandom(8).hex()}")

    def _join(self, pid: int, ours: Collection[int], over: OverRule) -> int | None:
        """Do `acquire` with an existing directory; None: look again, it is held or has just disappeared."""
        seen = holder_of(self.path)
        if not seen:
            return None
        if seen.foreign:
            return 0
        if self._is_stale(seen):
            self._retire(seen)
            return None
        # Our own pid, though this process holds nothing: left by a dead process with the same pid.
        if seen.pid == pid or seen.pid in ours:
            return seen.pid
        if seen.pid is not None and over(seen):
            self._retire(seen)
        return None

    def _is_stale(self, seen: Holder) -> bool:
        """Return whether it is provably stale: its process is dead, or it has had no pid for too long."""
        if seen.pid is not None:
            return not process.alive(seen.pid)
        return self._clock.time() - seen.changed > NO_PID_SECONDS

    def _retire(self, seen: Holder) -> None:
        """Move the directory that was `seen` away and remove it; put it back if it is another one.

        Between our look and our rename an agent may have released and taken it again: then the moved
        directory is its living lock.
        """
        private = self._private()
        try:
            self.path.rename(private)
        except (FileNotFoundError, PermissionError):
            return
        moved = holder_of(private)
        if not moved:
            return
        if moved.identity == seen.identity and moved.pid == seen.pid:
            _remove(private)
            return
        with suppress(FileExistsError):
            rename(private, self.path)


def _read_pid(file: Path) -> tuple[int | None, datetime | None]:
    """Return the pid in `file` and when it was written; None for a text that is not a number (yet)."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        # Missing, or something that the protocol does not put there.
        return None, None
    try:
        text = os.read(descriptor, _PID_LIMIT).strip()
        since = datetime.fromtimestamp(os.fstat(descriptor).st_mtime, timezone.utc)
    except IsADirectoryError:
        return None, None
    finally:
        os.close(descriptor)
    return (int(text), since) if text.isdigit() and int(text) > 0 else (None, None)


def _remove(private: Path) -> None:
    """Remove the files of the protocol; other files stay, under the private name."""
    for name in (_PID, _MARK):
        (private / name).unlink(missing_ok=True)
        # A process that died in `hand_over` left a temporary file.
        fs.sweep(private, name, older_than=0.0)
    try:
        private.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def _held(path: Path) -> HeldError:
    holder = holder_of(path)
    pid = holder.pid if holder else None
    who = "a process that has not written its pid" if pid is None else f"pid {pid}"
    since = "" if not holder else f" since {timestamps.render(holder.since)}"
    message = f"The project is locked by {who}{since}: {path}"
    return HeldError(message, "Wait until it ends, or end that session.")


# A kernel or a file system that does not know the call.
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)

_HERE = -100  # AT_FDCWD
_NO_REPLACE = 1  # RENAME_NOREPLACE
_EXCLUSIVE = 4  # RENAME_EXCL


def rename(source: Path, target: Path) -> None:
    """Rename `source` to `target` without replacing, in the same file system.

    `rename()` replaces an empty directory, and `mkdir()` makes one that is empty for a moment; the system
    call that does neither is not in Python. Where there is none, `target` is empty for that moment.
    Raises FileExistsError if `target` exists, or another OSError.
    """
    # For audit hooks (of the tests), as Python's own rename raises it.
    sys.audit("os.rename", os.fspath(source), os.fspath(target), -1, -1)
    number = _renamed(os.fsencode(source), os.fsencode(target))
    if number in _UNSUPPORTED:
        target.mkdir(0o755)
        try:
            source.rename(target)
        except OSError as error:
            # Not empty: an agent has taken it over meanwhile.
            number = errno.EEXIST if error.errno == errno.ENOTEMPTY else error.errno or errno.EIO
            with suppress(OSError):
                target.rmdir()
        else:
            return
    if number:
        raise OSError(number, os.strerror(number), str(source), None, str(target))


def _renamed(old: bytes, new: bytes) -> int:
    """Rename `old` to `new` in one step; return the number of an error, or 0."""
    import ctypes  # noqa: PLC0415 (a verb that only reads needs none)

    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        failed = libc.renamex_np(old, new, _EXCLUSIVE)
    elif sys.platform.startswith("linux") and hasattr(libc, "renameat2"):
        failed = libc.renameat2(_HERE, old, _HERE, new, _NO_REPLACE)
    else:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0

"""Who may move a repository now, and which of git's own lock files are left over from the dead.

Crash model: we, and every git process that we started, may be killed at any moment.
A killed git leaves `index.lock` and the like behind, and nothing in them says whose they are.
So every git process that moves something inherits one flock; whoever gets that flock afterwards knows that
none of ours is left, and only foreign processes have to be looked for.
The file of the flock says since when its holder has been at work; the next one that still finds this there
knows that the last did not come to its end.
Source: design section 6, "A leftover git lock is removed only if ...".
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.errors import HeldError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness_lib.system.git import Git

LOCK_NAME = "harness-git.lock"
OURS = "refs/harness/"
NOTE_LIMIT = 64

# The kernel stamps files with a clock that ticks every few milliseconds and runs behind time.time().
CLOCK_SLACK = 0.1

# These live for hours beside editors and agents, and never take a lock.
HARMLESS = {b"fsmonitor--daemon", b"cat-file", b"credential-cache--daemon", b"daemon"}

_Key = tuple[str, int, int]
_held: dict[_Key, int] = {}


def held_fds(git_dir: Path) -> tuple[int, ...]:
    """Return the descriptor that a git child of this thread must inherit, if it holds `git_dir`."""
    fd = _held.get(_key(git_dir))
    return () if fd is None else (fd,)


@contextmanager
def hold(git: Git, timeout: float = 30.0) -> Iterator[None]:
    """Be the only one of us that moves this work tree; may be nested.

    Git children started inside inherit the lock, so it outlives us until the last of them is dead.
    What the git of a killed holder has left is removed first.
    Waits at most `timeout` seconds, then raises HeldError.
    """
    key = _key(git.git_dir)
    if key in _held:
        yield
        return
    path = git.git_dir / LOCK_NAME
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait(fd, path, timeout)
        _held[key] = fd
        _begin(git, fd)
        yield
        # Not after an exception: an interrupt makes subprocess kill git, which leaves locks.
        os.ftruncate(fd, 0)
    finally:
        _held.pop(key, None)
        # Closed, never LOCK_UN: that would also take it from a git child that is still running.
        os.close(fd)


def _key(git_dir: Path) -> _Key:
    # With the process: a fork inherits this table, but not the right to move anything.
    return str(git_dir), os.getpid(), threading.get_ident()


def _wait(fd: int, path: Path, timeout: float) -> None:
    end = time.monotonic() + timeout
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise HeldError(
                    f"another harness process is moving this work tree ({path} is held)",
                    "wait until it has ended, then try again",
                ) from None
            time.sleep(0.02)
        else:
            return


def _begin(git: Git, fd: int) -> None:
    """Note in our own lock file since when we move things, once nothing of a killed holder is left."""
    since = _noted(fd)
    if since is not None:
        try:
            remove_dead_locks(git, since, everywhere=True)
        except HeldError:
            # Perhaps somebody's: then git says so where it matters. The note stays for whoever comes next.
            return
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%.3f\n" % time.time(), 0)


def _noted(fd: int) -> float | None:
    """Return since when the last holder was at work; None if it came to its end."""
    try:
        return float(os.pread(fd, NOTE_LIMIT, 0))
    except ValueError:
        return None


def leftover_locks(git: Git, refs: Sequence[str] = ()) -> list[Path]:
    """Return git's lock files that stand now: of the index, HEAD, its branch, packed refs, and `refs`."""
    places = [git.git_dir / "index.lock", git.git_dir / "HEAD.lock", git.common_dir / "packed-refs.lock"]
    branch = git.branch()
    names = dict.fromkeys([*([branch] if branch else []), *refs])
    places += [git.common_dir / f"{name}.lock" for name in names]
    return [place for place in places if place.is_file()]


def remove_dead_locks(
    git: Git, since: float, refs: Sequence[str] = (), *, everywhere: bool = False
) -> list[Path]:
    """Remove the lock files that our own dead git left, and return them; call it inside `hold()` only.

    `since` is when our interrupted operation began (epoch seconds, wall clock): an older lock is not ours.
    A lock of one of `refs` below `refs/harness/` can only be ours, and `hold()` proves that ours are dead.
    `everywhere`: those of all refs below it, too; they may be another worktree's and need the same proof.
    Raises HeldError, naming the file, its age and what to do, when a lock might still be somebody's.
    """
    found = leftover_locks(git, refs)
    foreign = [path for path in found if not _is_ours(git, path)]
    if everywhere:
        others = [path for path in (git.common_dir / OURS).rglob("*.lock") if path not in found]
        found += others
        foreign += others
    if foreign:
        _prove_dead(git, foreign, since)
    for path in found:
        path.unlink(missing_ok=True)
    return found


def remove_dead_lock_of(git: Git, ref: str) -> bool:
    """Remove git's lock on `ref`, which nobody but us moves, if no git works in this repository.

    Return whether the lock is gone now.
    """
    path = git.common_dir / f"{ref}.lock"
    if path.exists() and not _live_git(git):
        path.unlink(missing_ok=True)
    return not path.exists()


def _is_ours(git: Git, path: Path) -> bool:
    return path.is_relative_to(git.common_dir / OURS)


def _prove_dead(git: Git, paths: Sequence[Path], since: float) -> None:
    for path in paths:
        try:
            written = path.stat().st_mtime
        except FileNotFoundError:
            continue
        if written < since - CLOCK_SLACK:
            raise _held_error(path, written, "it is older than our own work here")
    live = _live_git(git)
    for path in paths:
        if live and path.exists():
            raise _held_error(path, path.stat().st_mtime, live)


def _held_error(path: Path, written: float, why: str) -> HeldError:
    age = max(0, int(time.time() - written))
    return HeldError(
        f"git's lock {path} stands since {age} s and is not provably ours: {why}",
        "let the git command that made it end; if none is running, delete that one file and try again",
    )


def _live_git(git: Git) -> str:
    """Say which git process works in this repository; the empty string if there is none."""
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        return "running processes cannot be listed on this system"
    places = _places(git)
    for entry in proc.iterdir():
        if entry.name.isdigit() and _works_in(entry, places):
            return f"git process {entry.name} is working in this repository"
    return ""


def _places(git: Git) -> tuple[str, ...]:
    """Return every directory from which a command can reach these locks: all linked worktrees share some."""
    places = {git.top, git.git_dir, git.common_dir}
    if git.common_dir.name == ".git":
        places.add(git.common_dir.parent)
    for link in (git.common_dir / "worktrees").glob("*/gitdir"):
        places.add(Path(os.fsdecode(link.read_bytes().rstrip(b"\n"))).parent)
    return tuple(os.path.realpath(place) for place in places)


def _works_in(process: Path, places: Sequence[str]) -> bool:
    try:
        if not (process / "comm").read_bytes().startswith(b"git"):
            return False
        argv = (process / "cmdline").read_bytes().split(b"\0")
        if HARMLESS.intersection(argv):
            return False
        # A zombie has neither arguments nor a directory, and holds nothing.
        cwd = str((process / "cwd").readlink()) if any(argv) else ""
    except (FileNotFoundError, ProcessLookupError):
        return False
    except PermissionError:
        # Another user's git: where it works cannot be seen, so it may be here.
        return True
    words = [cwd, *(os.fsdecode(word) for word in argv[1:])]
    return any(_inside(word.partition("=")[2] or word, places) for word in words)


def _inside(path: str, places: Sequence[str]) -> bool:
    return any(path == place or path.startswith(place + os.sep) for place in places)

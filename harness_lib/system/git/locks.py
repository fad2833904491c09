"""Let one process of harness at a time move a work tree, and remove lock files of its killed git processes.

Crash model: harness and each git process that it started may be killed at any moment.
A killed git leaves `index.lock` and the like, and nothing in them names their owner. So every git process
that moves something inherits one flock: the next holder of it knows that no git process of harness is left,
and only has to look for foreign ones. The file of the flock has the time since when its holder works; if the
next one still finds it, the last one was killed. On Linux /proc has the directory and the arguments of a
process; elsewhere `ps` has only its name, so every git process may be the owner of a lock file. Source:
docs/design.md, "The crash model".
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.errors import HeldError
from harness_lib.system import flock, fs
from harness_lib.system.git import calls
from harness_lib.system.processes import process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness_lib.system.git.repository import Git

LOCK_NAME = "harness-git.lock"
OURS = "refs/harness/"
EVERYWHERE = (OURS, "refs/heads/harness/")
# The kernel stamps files with a clock that ticks every few milliseconds and runs behind time.time().
CLOCK_SLACK = 0.1
# These live for hours beside editors and agents, and never take a lock.
HARMLESS = {b"fsmonitor--daemon", b"cat-file", b"credential-cache--daemon", b"daemon"}
# With these git works in another directory than its own.
ELSEWHERE = (b"GIT_DIR=", b"GIT_COMMON_DIR=", b"GIT_INDEX_FILE=", b"GIT_WORK_TREE=")
# A process: pids are reused; pid and start together are unique.
Living = frozenset[tuple[int, str]]


@contextmanager
def hold(git: Git, timeout: float = 30.0) -> Iterator[None]:
    """Be the only process of harness that moves this work tree, inside the block; may be nested.

    Git children started inside inherit the lock, so it is held until the last of them is dead.
    Lock files of a killed holder are removed first.
    Waits at most `timeout` seconds, then raises HeldError.
    """
    if calls.descriptors(git.git_dir):
        yield
        return
    path = git.git_dir / LOCK_NAME
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if not flock.take_within(fd, timeout):
            raise HeldError(
                f"another harness process is moving this work tree ({path} is held)",
                "wait until it has ended, then try again",
            )
        with calls.inherited(git.git_dir, fd):
            _begin(git, fd)
            yield
        # Not after an exception: after an interrupt subprocess kills git, which leaves lock files.
        os.ftruncate(fd, 0)
    finally:
        # Closed, never LOCK_UN: that would release it for a git child that still runs.
        os.close(fd)


def _begin(git: Git, fd: int) -> None:
    """Write the time into the lock file, once no lock file of a killed holder is left."""
    try:
        since = float(os.pread(fd, 64, 0))
    except ValueError:
        # The last holder has finished.
        since = None
    if since is not None:
        try:
            remove_dead_locks(git, since, everywhere=True)
        except HeldError:
            # Perhaps foreign: then git fails where it matters. The note stays for the next holder.
            return
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%.3f\n" % time.time(), 0)


def leftover_locks(git: Git, refs: Sequence[str] = ()) -> list[Path]:
    """Return the present lock files of git: of the index, HEAD, its branch, packed refs, and `refs`."""
    places = [git.git_dir / "index.lock", git.git_dir / "HEAD.lock", git.common_dir / "packed-refs.lock"]
    branch = git.branch()
    names = dict.fromkeys([*([branch] if branch else []), *refs])
    places += [git.common_dir / f"{name}.lock" for name in names]
    return [place for place in places if place.is_file()]


def remove_dead_locks(
    git: Git, since: float, refs: Sequence[str] = (), *, everywhere: bool = False
) -> list[Path]:
    """Remove the lock files of harness's dead git processes, and return them; only inside `hold()`.

    `since` is when the interrupted operation began (epoch seconds, wall clock): an older lock is foreign.
    A lock below `refs/harness/` can only be harness's, and `hold()` proves that its process is dead.
    `everywhere`: those of all such refs, too; they may be of another worktree and need the same proof.
    Raises HeldError, naming the file, its age and what to do, if a lock may have a living owner.
    """
    leftover = leftover_locks(git, refs)
    foreign = [path for path in leftover if not path.is_relative_to(git.common_dir / OURS)]
    if everywhere:
        places = (path for ref in EVERYWHERE for path in fs.below(git.common_dir / ref, "*.lock"))
        others = [path for path in places if path not in leftover]
        leftover += others
        foreign += others
    if foreign:
        _prove_dead(git, foreign, since)
    for path in leftover:
        path.unlink(missing_ok=True)
    return leftover


def _prove_dead(git: Git, paths: Sequence[Path], since: float) -> None:
    owners: set[int] = set()
    for path in paths:
        try:
            info = path.stat()
        except FileNotFoundError:
            continue
        if info.st_mtime < since - CLOCK_SLACK:
            raise _held_error(path, info.st_mtime, "it is older than the work of harness here")
        owners.add(info.st_uid)
    live = living(places(git), owners)
    for path in paths:
        if live and path.exists():
            raise _held_error(path, path.stat().st_mtime, named(live))


def _held_error(path: Path, written: float, why: str) -> HeldError:
    age = max(0, int(time.time() - written))
    return HeldError(
        f"git's lock {path} is {age} s old and may belong to another program: {why}",
        "let the git command that made it end; if none is running, delete that one file and try again",
    )


def living(directories: Sequence[str], owners: Collection[int]) -> Living:
    """Return the git processes that work in one of the directories.

    Where another user's git works cannot be seen: it counts if that user is one of `owners`, of the locks.
    """
    return frozenset(
        (each.pid, each.started)
        for each in process.everybody()
        if each.name.startswith("git") and _works_in(Path("/proc", str(each.pid)), directories, owners)
    )


def named(processes: Living) -> str:
    """Return a sentence that names these processes."""
    pids = ", ".join(str(pid) for pid, _ in sorted(processes))
    return f"git process {pids} is working in this repository"


def places(git: Git) -> tuple[str, ...]:
    """Return every directory from which git can reach the locks; linked worktrees share some."""
    found = {git.top, git.git_dir, git.common_dir, *(top for _, top in git.linked())}
    if git.common_dir.name == ".git":
        found.add(git.common_dir.parent)
    return tuple(os.path.realpath(each) for each in found)


def _works_in(entry: Path, directories: Sequence[str], owners: Collection[int]) -> bool:
    if not process.has_proc():
        return True
    try:
        argv = _arguments(entry)
        # Without arguments it just begins or ends, and holds nothing; the system may refuse to show more.
        if not any(argv) or HARMLESS.intersection(argv):
            return False
        try:
            cwd = str((entry / "cwd").readlink())
            variables = (entry / "environ").read_bytes().split(b"\0")
        except PermissionError:
            # Another user's, or one that has ended since.
            return process.user(entry) in owners and any(_arguments(entry))
    except (FileNotFoundError, ProcessLookupError):
        return False
    values = [*argv[1:], *(each for each in variables if each.startswith(ELSEWHERE))]
    words = [cwd, *(os.fsdecode(word) for word in values)]
    return any(calls.covers(directories, word.partition("=")[2] or word) for word in words)


def _arguments(entry: Path) -> list[bytes]:
    return (entry / "cmdline").read_bytes().split(b"\0")

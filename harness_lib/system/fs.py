"""Write, list and remove files and directories, although other processes may do so at the same time.

Of a file that `write` replaces, a reader sees the old or the new content, also after a power cut. Crash
model: a process may die, and the disk may fill, at any line of it. Then the old file is still there, and
perhaps a temporary file beside it that `sweep` removes later.
Source: docs/design.md, "On disk".
"""

from __future__ import annotations

import errno
import fnmatch
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

STALE_SECONDS = 3600.0
PRIVATE = 0o600
# How often a directory is made again that another process removes before anything is in it.
TRIES = 20

_GIT = ".git"
# In a project.
_OURS = frozenset({".harness", _GIT})

_Made = TypeVar("_Made")


def write(
    path: Path,
    data: bytes,
    *,
    durable: bool = True,
    whole: bool = False,
    mode: int | None = None,
    make: bool = False,
    last_look: Callable[[], None] = lambda: None,
) -> None:
    """Replace the content of `path` by `data` in one step; its directory must exist, or is made with `make`.

    A symbolic link is replaced like a file, and its target is not changed.
    `mode`: permission bits; None keeps those of the existing file, and makes a new one for its owner alone.
    `durable`: return only when content and name have reached the disk. `whole`: otherwise a power cut leaves
    the old content or the new one, and never a part.
    `last_look` is called right before the renaming; if it raises, the old content remains.
    Raises OSError, also if a device, a pipe or a socket is there; then the old content remains, and the
    temporary file is gone.
    """
    if make:
        within(
            path.parent,
            lambda: write(path, data, durable=durable, whole=whole, mode=mode, last_look=last_look),
        )
        return
    # Renamed over by root, `/dev/null` would be a file, for the whole machine.
    with suppress(FileNotFoundError):
        if stat.S_IFMT(path.lstat().st_mode) not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR):
            raise OSError(errno.EINVAL, "It is a device, a pipe or a socket", str(path))
    bits = permissions(path) if mode is None else mode
    temporary, descriptor = _create(path, bits)
    try:
        try:
            # Unlike those of open() these bits are not cut down by the umask.
            os.fchmod(descriptor, bits)
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            if durable or whole:
                _sync(descriptor)
        finally:
            os.close(descriptor)
        last_look()
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def within(directory: Path, act: Callable[[], _Made]) -> _Made:
    """Make `directory` and return what `act` returns; again if the directory is removed in between.

    An agent may remove `.harness/` at any moment. Raises OSError.
    """
    for _ in range(TRIES - 1):
        try:
            make_directory(directory)
            return act()
        except FileNotFoundError:
            continue
    make_directory(directory)
    return act()


def can_write(directory: Path) -> bool:
    """Return whether a file can be made in `directory`; only trying tells, in a sandbox."""
    try:
        temporary, descriptor = _create(directory / "harness-probe", PRIVATE)
    except OSError:
        return False
    os.close(descriptor)
    temporary.unlink()
    return True


def sweep(directory: Path, name: str, *, older_than: float = STALE_SECONDS) -> int:
    """Remove temporary files that dead writers of `name` left in `directory`; return how many.

    Only files that are `older_than` so many seconds: a younger one may belong to a living writer.
    """
    limit, count = time.time() - older_than, 0
    for temporary in matching(directory, f".{name}.*.tmp"):
        # A peer may sweep the same directory.
        with suppress(FileNotFoundError):
            if temporary.lstat().st_mtime < limit:
                temporary.unlink()
                count += 1
    return count


def make_directory(path: Path, mode: int = 0o700) -> None:
    """Make the directory `path` and missing ones above it, each with `mode`: for its owner alone.

    The output of checks and agents may have secrets in it.
    A project or its git directory is never made: a missing one may have been moved, and a new one would be in
    the way when it is moved back.
    Raises FileNotFoundError if one of these is missing, or if a directory is removed meanwhile;
    FileExistsError if something else is there.
    """
    # Usually it is there, and nothing above it needs a look.
    for each in () if path.is_dir() else reversed((path, *path.parents)):
        if not each.is_dir():
            if each.name == _GIT or (_OURS.isdisjoint(each.parts) and not _OURS.isdisjoint(path.parts)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(each))
            try:
                each.mkdir(mode)
            except FileExistsError:
                # Another process was faster, and may have removed it again.
                if not stat.S_ISDIR(each.lstat().st_mode):
                    raise


def keep_private(directory: Path) -> None:
    """Remove the permissions of other users for `directory`, if this user owns it."""
    info = directory.stat()
    if info.st_uid == os.geteuid() and info.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        directory.chmod(stat.S_IMODE(info.st_mode) & stat.S_IRWXU)


def remove(path: Path) -> None:
    """Remove the file `path`, if it is there."""
    path.unlink(missing_ok=True)


def stamp(path: Path) -> tuple[int, int, int] | None:
    """Return a value that changes with the file `path`; None without it."""
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns


def sync_directory(directory: Path) -> None:
    """Return when the names in `directory` have reached the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def permissions(target: Path) -> int:
    """Return the permission bits of the file `target`; those of a private one if it is a link or missing."""
    try:
        info = target.lstat()
    except FileNotFoundError:
        return PRIVATE
    # A link has none of its own.
    return PRIVATE if stat.S_ISLNK(info.st_mode) else stat.S_IMODE(info.st_mode)


def _create(target: Path, mode: int) -> tuple[Path, int]:
    """Return a new file beside `target` (renames do not cross file systems) and a descriptor to write it."""
    temporary = target.parent / f".{target.name}.{os.urandom(8).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    return temporary, os.open(temporary, flags, mode)


def _sync(descriptor: int) -> None:
    """Flush to the disk: on macOS fsync() stops at the drive's cache, and not every volume can do better."""
    import fcntl  # noqa: PLC0415 (hooks load this file and never sync)

    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        try:
            fcntl.fcntl(descriptor, full)
        except OSError:
            pass
        else:
            return
    os.fsync(descriptor)


def matching(directory: Path, pattern: str) -> list[Path]:
    """Return the entries of `directory` that match `pattern`; none if it is missing or cannot be read."""
    # `Path.glob` fails if a directory disappears meanwhile (before Python 3.13).
    try:
        return [path for path in directory.iterdir() if fnmatch.fnmatchcase(path.name, pattern)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def below(directory: Path, pattern: str) -> Iterator[Path]:
    """Yield the files in and below `directory` whose names match `pattern`."""
    # `os.walk` skips directories that it cannot read, and follows no link but the first.
    is_link = os.path.islink(directory)  # noqa: PTH114 (no error where that may not be looked at)
    for folder, _, names in () if is_link else os.walk(directory):
        yield from (Path(folder, name) for name in names if fnmatch.fnmatchcase(name, pattern))


def copy(source: Path, target: Path) -> None:
    """Copy a file or a whole directory, links as links. Raises OSError."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def reopen(top: Path, only: str = "*") -> None:
    """Take back the user's rights on the directory `top` and, below it, on those in entries like `only`."""
    if top.is_dir() and not top.is_symlink():
        with suppress(OSError):
            top.chmod(stat.S_IMODE(top.stat().st_mode) | stat.S_IRWXU)
        for entry in matching(top, only):
            reopen(entry)


def remove_tree(directory: Path) -> None:
    """Remove the whole `directory`, as far as possible."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.is_dir():
        # Go makes its caches of modules read-only, for example.
        reopen(directory)
        shutil.rmtree(directory, ignore_errors=True)

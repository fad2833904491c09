"""Read the list from its file or from a copy, and keep the copies.

Source: docs/design.md, "Lost or broken".
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness_lib.errors import EnvSetupError, GoneError, StateUnreadableError
from harness_lib.state import codec, summary
from harness_lib.system import fs
from harness_lib.system.place import find_root, own_files
from harness_lib.system.place.roots import Root
from harness_lib.task import State
from harness_lib.text import some

KEPT = 20
KEPT_BYTES = 64 * 1024 * 1024
_DIGITS = 10
# The git directory is closed by a sandbox, or something else is in its place.
CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


# Why a copy was read: the permissions allow to read the list, and yet it cannot be read.
DENIED = "cannot be read in this sandbox"


class Loaded(NamedTuple):
    """A list that was read, and where it was read from.

    `data` and `stamp` are of the file as it is now, None if it is missing. `ours`: it is unchanged since
    harness wrote it; then `document` is None, and `texts` has the text of each task. `source` is the name of
    the copy that was read instead, None if the file is whole; `why` is the problem of the file.
    """

    state: State
    document: Any
    data: bytes | None
    stamp: summary.Stamp | None
    ours: bool
    source: str | None = None
    why: str | None = None
    texts: Sequence[str] = ()


def find(root: Root) -> Loaded:
    """Return the list at `root`, or the newest good copy if the file is broken or missing.

    Raises ContractError if the file holds tasks but is invalid (a user edited it, so no copy replaces it),
    StateUnreadableError if no good copy is left, EnvSetupError if it may not be read.
    """
    last = remembered(root)
    if last and last.stamp == stamp_now(root):
        return last
    content = _content(root.state)
    if not content:
        return _substitute(root, "is missing", None, None)
    data, info = content
    stamp = summary.stamp(info)
    if summary.read_for(os.fspath(root.summary), info) is not None:
        known = {} if not last else dict(zip(last.texts, last.state.tasks, strict=True))
        written, texts = codec.decode_rendered(data.decode(), known)
        return remember(root, Loaded(written, None, data, stamp, ours=True, texts=texts))
    try:
        document: Any = codec.parse(data)
    except codec.UnparseableError as error:
        return _substitute(root, f"is not JSON ({error})", data, stamp)
    if codec.is_emptied(document):
        return _substitute(root, "has no tasks in it", data, stamp)
    state = codec.examined(codec.decode(document, root.state.name))
    return Loaded(state, document, data, stamp, ours=False)


def look(root: Root) -> Loaded:
    """Return what `find` does, or the newest good copy if a sandbox does not let the list be read.

    For those who only look at it. Raises as `find` does.
    """
    try:
        return find(root)
    except EnvSetupError as error:
        # Landlock allows the file that was there when the agent began, and each change makes another one.
        if not isinstance(error.__cause__, PermissionError) or not os.access(root.state, os.R_OK):
            raise
        return _substitute(root, DENIED, None, None)


def find_instead(root: Root) -> Loaded:
    """Return the newest good copy of a list that the user gives up. Raises as `find` does."""
    content = _content(root.state)
    if not content:
        return _substitute(root, "is missing", None, None)
    return _substitute(root, "is not as it must be", content[0], summary.stamp(content[1]))


class Copy(NamedTuple):
    """A good earlier state: its file, the bytes in it, when they were written (in ns), and what they say."""

    path: Path
    data: bytes
    written: int
    document: object
    state: State


def _good(path: Path) -> Copy | None:
    """Return the list in `path` if it is whole and valid, else None."""
    try:
        with own_files.reading(path) as stream:
            data, info = stream.read(), os.fstat(stream.fileno())
        document = codec.parse(data)
        return Copy(path, data, info.st_mtime_ns, document, codec.decode(document))
    except (OSError, codec.UnparseableError, codec.ContractError):
        # `.harness/` may be deleted at any time.
        return None


def newest(root: Root) -> Copy | None:
    """Return the newest generation that is good: the list as harness wrote it last."""
    return next(filter(None, map(_good, _newest_first(root))), None)


def changed(root: Root, was: State, now: State) -> str:
    """Return in words what `now`, which is not ours, lacks of the list that `was`; "" if it has all of it.

    Git does that to a list that it tracks (a stash, a reset), or that comes with a merge. Only inside a
    transaction, because a writer keeps its copy of the list after the list; those who read ask `replaced`.
    """
    statuses = {task.id: task.status for task in now.tasks}
    still = [(task, statuses[task.id]) for task in was.tasks if task.id in statuses]
    numbers = {session.number for session in now.sessions or ()}
    lacking = {
        "another list, made": [now.created or "?"] if now.created != was.created else [],
        "gone": [task.id for task in was.tasks if task.id not in statuses],
        "no longer completed": [task.id for task, status in still if task.is_done and status != "completed"],
        # The legacy protocol fails what it takes from another worker.
        "no longer in progress": [
            task.id for task, status in still if (task.status, status) == ("in_progress", "pending")
        ],
        "no longer open": [
            f"session {each.number}" for each in was.sessions or () if each.number not in numbers
        ],
    }
    words = "; ".join(f"{what}: {some(names)}" for what, names in lacking.items() if names)
    return words and f"{root.state.name} was changed outside of harness, perhaps by git ({words})"


def replaced(root: Root, loaded: Loaded) -> list[str]:
    """Return a warning for those who only read the file, which is not ours, if it has `changed`."""
    was = newest(root)
    words = changed(root, was.state, loaded.state) if was else ""
    if not words or _is_locked(root) or find(root).ours:
        return []
    return [f"{words}. The user can put the last list back: harness check --restore"]


def _is_locked(root: Root) -> bool:
    """Return whether a writer has signed the lock of the list and has not left, or died.

    It signs before it replaces the list, and writes the status cache before it leaves.
    """
    try:
        return root.lock_file.stat().st_size > 0
    except OSError:
        return False


# The last list written by harness that this process has read or written. A verb reads the list several times,
# a worker for hours. A list that this process has written is not decoded again; of a list that another
# process has written only the changed tasks are.
_last: tuple[Path, Loaded] | None = None


def remember(root: Root, loaded: Loaded) -> Loaded:
    """Remember `loaded`, a list that harness wrote, and return it."""
    global _last  # noqa: PLW0603 (one for the process)
    _last = root.path, loaded
    return loaded


def remembered(root: Root) -> Loaded | None:
    """Return the list at `root` that this process read or wrote last, whether or not it still exists."""
    return _last[1] if _last and _last[0] == root.path else None


def stamp_now(root: Root) -> summary.Stamp | None:
    """Return the present stamp of the file, None if it is missing."""
    try:
        return summary.stamp(root.state.lstat())
    except FileNotFoundError:
        return None


def _content(path: Path) -> tuple[bytes, os.stat_result] | None:
    """Return the bytes of `path` and its stat, None if it is missing."""
    try:
        with own_files.reading(path) as stream:
            # The stat comes last: after a change while we read, the stamp does not match the cache.
            return stream.read(), os.fstat(stream.fileno())
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "See what is there and who may read it: harness doctor"
        raise EnvSetupError(f"{path} cannot be read: {error.strerror}", hint) from error


def _substitute(root: Root, why: str, data: bytes | None, stamp: summary.Stamp | None) -> Loaded:
    for copy in _copies(root):
        inside = copy.path.is_relative_to(root.path) and copy.path != backup_copy(root)
        source = os.fspath(copy.path.relative_to(root.path) if inside else copy.path)
        state = codec.examined(copy.state)
        return Loaded(state, copy.document, data, stamp, ours=False, source=source, why=why)
    if not root.path.is_dir():
        raise GoneError(root.path)
    left, hint = "no good earlier state", "Correct the file by hand, then look at it: harness check"
    if data is None:
        left, hint = "no earlier state", "Make a new list: harness init"
    raise StateUnreadableError(f"{root.state} {why}, and {left} is left.", hint)


def _copies(root: Root) -> list[Copy]:
    """Return the good earlier states, the newest first."""
    found: list[Copy] = []
    for copy in (newest(root), *map(_good, filter(None, (root.backup, backup_copy(root))))):
        # The copy in the git directory is made last: of two equal ones the first is named.
        if copy and all(copy.document != other.document for other in found):
            found.append(copy)
    # The legacy protocol writes .bak and no generations: then .bak is the newer one.
    return sorted(found, key=lambda copy: copy.written, reverse=True)


def backup_copy(root: Root) -> Path | None:
    """Return the file for a copy of the list in the git directory; None outside of a repository."""
    copy = find_root.backup_copy(os.path.realpath(root.path))
    return None if copy is None else Path(copy)


def keep_backup_copy(copy: Path | None, data: bytes) -> Path | None:
    """Write `data` into `copy` in the git directory, which `git clean` does not touch, and return it.

    None if that directory cannot be written. Raises OSError.
    """
    if not copy:
        return None
    try:
        fs.write(copy, data, durable=False, mode=fs.PRIVATE, make=True)
    except OSError as error:
        if error.errno not in CLOSED:
            raise
        return None
    return copy


def save(root: Root, data: bytes, twin: Path | None = None) -> None:
    """Keep `data` as the newest generation, and remove those beyond 20 files or 64 MB, never the newest.

    If there is a `twin`, it has the same content: it gets a second name, so that nothing is written twice.
    Only inside a transaction, because the next number is that of the newest file plus one. Raises OSError.
    """
    present = _newest_first(root)
    number = int(present[0].stem) + 1 if present else 1
    path = root.generations / f"{number:0{_DIGITS}}.json"
    if not twin or not _linked(twin, path):
        # Not durable: the list itself is, and older generations are behind this one.
        fs.write(path, data, durable=False, make=True)
    size = 0
    for place, kept in enumerate([path, *present]):
        try:
            size += kept.stat().st_size
        except FileNotFoundError:
            # `.harness/` may be deleted at any time.
            continue
        if place and (place >= KEPT or size > KEPT_BYTES):
            fs.remove(kept)


def _linked(file: Path, second: Path) -> bool:
    try:
        fs.within(second.parent, lambda: os.link(file, second))
    except OSError:
        # Another file system, or one without such names.
        return False
    return True


def keep_log(root: Root, copy: Path | None) -> None:
    """Give the log a second name beside `copy` of the list: it only grows, so nothing is written twice.

    To remove the first name then loses nothing. A file system without such names has none, nor has a log
    that is a symbolic link.
    """
    if not copy:
        return
    second = copy.with_suffix(".log")
    # What a file system, or a sandbox, does not allow is no reason to stop the work.
    with contextlib.suppress(OSError):
        info = os.lstat(root.log)
        if not stat.S_ISREG(info.st_mode) or own_files.is_at(second, info):
            return
        # A process that died here left it; the lock of the list excludes others.
        beside = second.with_name(f".{second.name}.tmp")
        fs.remove(beside)
        os.link(root.log, beside, follow_symlinks=False)
        beside.replace(second)


def give_back_log(root: Root) -> bool:
    """Restore a lost log, or the lines that another one in its place lacks; return whether one was kept."""
    copy = backup_copy(root)
    if not copy:
        return False
    second = copy.with_suffix(".log")
    try:
        kept = own_files.read(second)
        if os.path.lexists(root.log):
            there, known = own_files.read(root.log).split(b"\n"), {b"", *kept.split(b"\n")}
            added = [line + b"\n" for line in there if line not in known]
            # Another program may be writing into it: it is replaced only where it lacks something.
            if not known.issubset((b"", *there)):
                fs.write(root.log, kept + b"".join(added))
        else:
            os.link(second, root.log, follow_symlinks=False)
    except OSError:
        # Nothing was kept, or it was restored: another process was faster.
        return False
    return True


def _newest_first(root: Root) -> list[Path]:
    # A file with another name belongs to the user: it is never read and never removed.
    paths = fs.matching(root.generations, "[0-9]" * _DIGITS + ".json")
    return sorted(paths, key=lambda path: int(path.stem), reverse=True)

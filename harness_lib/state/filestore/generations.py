"""The last states of the list, each a file of its own, to restore a broken one from.

Source: docs/design.md, "Lost or broken".
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from harness_lib.state import codec
from harness_lib.state.codec import ContractError, UnparseableError
from harness_lib.system.files import atomic, listing, nofollow, second_name
from harness_lib.system.place import find_root
from harness_lib.system.place.roots import Root
from harness_lib.task import Task

KEPT = 20
KEPT_BYTES = 64 * 1024 * 1024
_DIGITS = 10
# A sandbox that keeps agents from the git directory, or something else in its place.
CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


def spare(root: Root, data: bytes) -> Iterator[Path]:
    """Keep `data` in the git directory, where no `git clean` comes, and yield the file.

    Where that is closed, there is none. Raises OSError.
    """
    place = find_root.spare(os.path.realpath(root.path))
    if place is None:
        return
    try:
        atomic.write(Path(place), data, durable=False, mode=atomic.PRIVATE, make=True)
    except OSError as error:
        if error.errno not in CLOSED:
            raise
    else:
        yield Path(place)


def save(root: Root, data: bytes, twin: Path | None = None) -> None:
    """Keep `data` as the newest generation and remove those beyond 20 files or 64 MB, never the newest.

    `twin`, where there is one, holds the same already: it gets a second name, so nothing is written twice.
    Only inside a transaction: the number of the next file is found by looking.
    Raises OSError.
    """
    present = _newest_first(root)
    number = int(present[0].stem) + 1 if present else 1
    path = root.generations / f"{number:0{_DIGITS}}.json"
    if twin is None or not _linked(twin, path):
        # Not durable: the state itself is, and behind this one stand its predecessors.
        atomic.write(path, data, durable=False, make=True)
    _prune([path, *present])


def _linked(file: Path, second: Path) -> bool:
    try:
        atomic.within(second.parent, lambda: os.link(file, second))
    except OSError:
        # Another file system, or one without such names.
        return False
    return True


def keep_log(root: Root) -> None:
    """Let a name in the git directory keep the log, too, which only grows."""
    place = find_root.spare(os.path.realpath(root.path))
    if place is not None:
        second_name.keep(root.log, _log_beside(place))


def give_back_log(root: Root) -> bool:
    """Put the log back where it was lost; return whether there was one to put back."""
    place = find_root.spare(os.path.realpath(root.path))
    return place is not None and second_name.give_back(_log_beside(place), root.log)


def _log_beside(place: str) -> Path:
    return Path(place).with_suffix(".log")


def newest_good(root: Root) -> tuple[str, object] | None:
    """Return (file name, document) of the newest generation that decodes strictly, or None."""
    for path in _newest_first(root):
        document = good_document(path)
        if document is not None:
            return path.name, document
    return None


def newest_tasks(root: Root) -> tuple[Task, ...]:
    """Return the tasks of the list as we wrote it last; none if that cannot be read."""
    for path in _newest_first(root)[:1]:
        try:
            return codec.decode(codec.parse(nofollow.read(path))).tasks
        except (OSError, UnparseableError, ContractError):
            return ()
    return ()


def good_document(path: Path) -> object | None:
    """Return the document in `path` if it is a whole and valid list, else None."""
    try:
        document = codec.parse(nofollow.read(path))
        codec.decode(document)
    except (OSError, UnparseableError, ContractError):
        return None
    return document


def _newest_first(root: Root) -> list[Path]:
    return sorted(_present(root), key=lambda path: int(path.stem), reverse=True)


def _present(root: Root) -> Iterator[Path]:
    # What is not named as ours is somebody's: never read, never removed.
    for path in listing.matching(root.generations, "*.json"):
        if path.stem.isascii() and path.stem.isdigit() and len(path.stem) == _DIGITS:
            yield path


def _prune(newest_first: list[Path]) -> None:
    size = 0
    for place, path in enumerate(newest_first):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            # `.harness/` may be deleted at any time.
            continue
        if place and (place >= KEPT or size > KEPT_BYTES):
            atomic.remove(path)

"""Remember answers of git that stay right: about objects, and about an index until it is written.

To ask git takes a process, each time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")

MOST = 256
# Of SHA-1; the end of a longer one serves as well.
_CHECKSUM = 20
_NO_INDEX = b"none"
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")

_objects: dict[tuple[Path, str, str], object] = {}
_indexes: dict[tuple[Path, str], tuple[bytes, object]] = {}
_files: dict[tuple[Path, str], tuple[tuple[int, ...], object]] = {}


def of_object(common_dir: Path, question: str, oid: str, ask: Callable[[], T]) -> T:
    """Return what `ask` answers to `question` about `oid`, an object of the repository with this directory.

    Asked again where `oid` names no object.
    """
    if not _OID.fullmatch(oid):
        return ask()
    key = (common_dir, question, oid)
    if key not in _objects:
        answer = ask()
        if len(_objects) >= MOST:
            _objects.clear()
        _objects[key] = answer
    return cast("T", _objects[key])


def of_index(git_dir: Path, question: str, ask: Callable[[], T]) -> T:
    """Return what `ask` answers to `question` about the index in `git_dir`; asked again once that changes."""
    key, before = (git_dir, question), _checksum(git_dir)
    if before is not None and key in _indexes and _indexes[key][0] == before:
        return cast("T", _indexes[key][1])
    answer = ask()
    # Not if somebody has written it while we asked.
    if before is not None and before == _checksum(git_dir):
        if len(_indexes) >= MOST:
            _indexes.clear()
        _indexes[key] = (before, answer)
    return answer


def of_file(path: Path, question: str, ask: Callable[[], T]) -> T:
    """Return what `ask` answers to `question` about the file at `path`; asked again once that is another.

    For files that git replaces as a whole, as it does its settings.
    """
    key, before = (path, question), _stamp(path)
    if before is not None and key in _files and _files[key][0] == before:
        return cast("T", _files[key][1])
    answer = ask()
    if before is not None and before == _stamp(path):
        _files[key] = (before, answer)
    return answer


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _checksum(git_dir: Path) -> bytes | None:
    """Return what git ends an index with, which is another for each content; None if nothing tells.

    A repository in which nothing was ever added has no index.
    """
    try:
        with (git_dir / "index").open("rb") as stream:
            stream.seek(-_CHECKSUM, os.SEEK_END)
            end = stream.read(_CHECKSUM)
    except FileNotFoundError:
        return _NO_INDEX
    except OSError:
        return None
    # Where `index.skipHash` is set.
    return end if any(end) else None

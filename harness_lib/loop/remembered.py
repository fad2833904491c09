"""Read files, remembered as long as they do not change: before every request dozens are asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def of(kept: dict[str, Any], path: Path, read: Callable[[Path], T]) -> T | None:
    """Return what `read` makes of the file `path`, called again only when it has changed; None without it."""
    known: dict[tuple[Path, object], tuple[object, T]] = kept.setdefault("remembered", {})
    try:
        status = path.stat()
    except OSError:
        return None
    stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
    key = (path, read)
    if key not in known or known[key][0] != stamp:
        known[key] = stamp, read(path)
    return known[key][1]

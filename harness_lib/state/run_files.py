"""Small files beside the list by which runs and other terminals tell each other something.

`board`: how a run looks, written by itself every second; `budget`: other limits that it is asked to take.
Each run has its own, by the number of its process; like all below `.harness/` they may be lost at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal

from harness_lib.system.files import atomic, directories
from harness_lib.system.place.roots import Root

Kind = Literal["board", "budget"]


def write(root: Root, kind: Kind, pid: int, document: Mapping[str, object]) -> None:
    """Leave `document` for, or of, the run of process `pid`; what was there before is gone."""
    path = root.private / name(kind, pid)
    atomic.write(path, json.dumps(document).encode(), durable=False, make=True)


def read(root: Root, kind: Kind, pid: int) -> bytes | None:
    """Return what was left, as it lies there; None if there is nothing."""
    try:
        return (root.private / name(kind, pid)).read_bytes()
    except FileNotFoundError:
        return None


def remove(root: Root, kind: Kind, pid: int) -> None:
    """Take it away, if it is there."""
    atomic.remove(root.private / name(kind, pid))


def pids(root: Root, kind: Kind) -> Iterator[int]:
    """Yield the processes that have such a file, dead ones perhaps among them, in the order of the names."""
    for path in sorted(directories.matching(root.private, f"{kind}-*.json")):
        number = path.stem.partition("-")[2]
        if number.isdecimal():
            yield int(number)


def stamps(root: Root, kind: Kind) -> list[object]:
    """Return what is another value after each change of these files."""
    values: list[object] = []
    for path in sorted(directories.matching(root.private, f"{kind}-*.json")):
        try:
            seen = path.stat()
        except OSError:
            # Its run has ended this moment.
            continue
        values.append((path.name, seen.st_ino, seen.st_size, seen.st_mtime_ns))
    return values


def name(kind: Kind, pid: int) -> str:
    """Return what the file is called."""
    return f"{kind}-{pid}.json"

"""Read and write the small files by which runs and other terminals exchange messages.

`board`: the state of a run, which it writes every second; `budget`: new limits for it.
Each run has its own, named by its pid; like all files below `.harness/` they may be lost at any time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal

from harness_lib.system.files import atomic, directories
from harness_lib.system.place.roots import Root

Kind = Literal["board", "budget"]


def write(root: Root, kind: Kind, pid: int, document: Mapping[str, object]) -> None:
    """Replace the file of the run of process `pid` by `document`."""
    path = root.private / name(kind, pid)
    atomic.write(path, json.dumps(document).encode(), durable=False, make=True)


def read(root: Root, kind: Kind, pid: int) -> bytes | None:
    """Return the content of the file; None if it is missing."""
    try:
        return (root.private / name(kind, pid)).read_bytes()
    except FileNotFoundError:
        return None


def remove(root: Root, kind: Kind, pid: int) -> None:
    """Remove the file if it exists."""
    atomic.remove(root.private / name(kind, pid))


def pids(root: Root, kind: Kind) -> Iterator[int]:
    """Yield the pids that have such a file, dead ones too, in the order of the names."""
    for path in sorted(directories.matching(root.private, f"{kind}-*.json")):
        number = path.stem.partition("-")[2]
        if number.isdecimal():
            yield int(number)


def stamps(root: Root, kind: Kind) -> list[object]:
    """Return a value that differs after each change of these files."""
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
    """Return the name of the file."""
    return f"{kind}-{pid}.json"

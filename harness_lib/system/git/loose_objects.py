"""Read from its own file what an object is and what it leads to: to ask git takes a process, each time.

What was made last lies in a file of its own, until git packs it.
The layout is the one of gitrepository-layout(5).
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_KINDS = frozenset({"blob", "tree", "commit", "tag"})
# A header is a word, a number and a NUL; what a commit says first is its tree.
_HEADER = 32
_TREE = re.compile(rb"commit [0-9]+\0tree ([0-9a-f]{40}(?:[0-9a-f]{24})?)\n")
_BEGINNING = 128


def kind(common_dir: Path, oid: str) -> str | None:
    """Return what the object called `oid` is; None where no whole file of its own tells: ask git."""
    word = _beginning(common_dir, oid, _HEADER).partition(b" ")[0].decode("ascii", "replace")
    return word if word in _KINDS else None


def tree(common_dir: Path, oid: str) -> str | None:
    """Return the tree of the commit called `oid`; None where no whole file of its own tells: ask git."""
    match = _TREE.match(_beginning(common_dir, oid, _BEGINNING))
    return match and match[1].decode("ascii")


def entries(common_dir: Path, oid: str) -> dict[str, tuple[bytes, bytes]] | None:
    """Return name → (mode, id) of what stands at the top of the tree called `oid`.

    None where no whole file of its own tells: ask git.
    """
    if not _OID.fullmatch(oid):
        return None
    try:
        header, _, content = zlib.decompress(_file(common_dir, oid).read_bytes()).partition(b"\0")
        return dict(_records(content, len(oid) // 2)) if header == b"tree %d" % len(content) else None
    except (OSError, zlib.error, ValueError):
        return None


def _records(content: bytes, id_size: int) -> Iterator[tuple[str, tuple[bytes, bytes]]]:
    at = 0
    while at < len(content):
        name_at = content.index(b" ", at) + 1
        id_at = content.index(b"\0", name_at) + 1
        end = id_at + id_size
        yield os.fsdecode(content[name_at : id_at - 1]), (content[at : name_at - 1], content[id_at:end])
        at = end


def _beginning(common_dir: Path, oid: str, size: int) -> bytes:
    """Return the first `size` bytes of the object, its header first; none where no file tells them."""
    if not _OID.fullmatch(oid):
        return b""
    try:
        with _file(common_dir, oid).open("rb") as stream:
            return zlib.decompressobj().decompress(stream.read(2 * size), size)
    except (OSError, zlib.error):
        return b""


def _file(common_dir: Path, oid: str) -> Path:
    return common_dir / "objects" / oid[:2] / oid[2:]

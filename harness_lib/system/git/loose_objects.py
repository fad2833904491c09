"""Read of what kind an object is from its own file: to ask git takes a process, each time.

What was made last lies in a file of its own, until git packs it.
The layout is the one of gitrepository-layout(5).
"""

from __future__ import annotations

import re
import zlib
from pathlib import Path

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_KINDS = frozenset({"blob", "tree", "commit", "tag"})
# A header is a word, a number and a NUL.
_HEADER = 32


def kind(common_dir: Path, oid: str) -> str | None:
    """Return what the object called `oid` is; None where no whole file of its own tells: ask git."""
    if not _OID.fullmatch(oid):
        return None
    try:
        with (common_dir / "objects" / oid[:2] / oid[2:]).open("rb") as stream:
            header = zlib.decompressobj().decompress(stream.read(2 * _HEADER), _HEADER)
    except (OSError, zlib.error):
        return None
    word = header.partition(b" ")[0].decode("ascii", "replace")
    return word if word in _KINDS else None
